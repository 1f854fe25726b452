//! What happened and what was decided, as JSON. Stored runs are read by later versions, so the names stay.

use crosspoint_workflow::repository::ClashReason;

use super::*;

fn json(happened: &Happened) -> String {
    serde_json::to_string(happened).expect("it can be written")
}

#[test]
fn what_happened_is_one_object() {
    let full = retry().notes(&["n"]).wrote(&["a.md"]).clashed(&[("b.md", ClashReason::Missing)]).at(1);
    let broke = |job: Option<&str>, clause: Option<&str>| Happened::Broke {
        step: 3,
        job: job.map(str::to_owned),
        failure: "timeout".to_owned(),
        clause: clause.map(str::to_owned),
        message: "m".to_owned(),
    };
    let all = [full, proceed().at(2), broke(Some("j"), Some("WF-2")), broke(None, None), answer("{\"a\": 1.0}", 4)];
    insta::assert_snapshot!(all.iter().map(json).collect::<Vec<_>>().join("\n"));
    for happened in &all {
        let again: Happened = serde_json::from_str(&json(happened)).expect("it can be read");
        assert_eq!(json(&again), json(happened));
    }
}

#[test]
fn members_of_later_versions_are_read_past() {
    let text = "{\"answered\":{\"step\":1,\"answer\":1,\"who\":\"me\"}}";
    assert!(serde_json::from_str::<Happened>(text).is_ok());
    let wrong = "{\"said\":{\"step\":1,\"job\":\"j\",\"success\":true,\"summary\":\"s\",\"recommendation\":\"stop\"}}";
    assert!(serde_json::from_str::<Happened>(wrong).is_err());
}

#[test]
fn what_was_decided_is_one_object() {
    let mut run = specify();
    let mut decided = vec![said(&mut run, proceed())];
    decided.push(said(&mut run, retry()));
    decided.push(said(&mut run, proceed().clashed(&[("a", ClashReason::Exists)])));
    decided.push(said(&mut run, escalate("Which?")));
    decided.push(answered(&mut run, "1"));
    decided.push(broke(&mut run));
    decided.push(answered(&mut run, "1"));
    decided.push(said(&mut run, proceed()));
    decided.push(said(&mut run, proceed()));
    let json = |decided: &Decided| serde_json::to_string(decided).expect("it can be written");
    insta::assert_snapshot!(decided.iter().map(json).collect::<Vec<_>>().join("\n"));
}
