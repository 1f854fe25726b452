//! Requests that come from files and responses that are written to files.

use super::*;

#[test]
fn however_a_job_ends_there_is_a_response_of_the_bridge_without_a_finding() {
    let (job, _) = came(Kind::BridgeRequest, &bridged());
    let of = |job: &Job| parsed(&told(job, Contract::Bridge), Kind::BridgeResponse);
    for (outputs, text) in [
        ("{}", "{}"),
        ("\"Größe\"", "Größe"),
        (r#"{"b": 2.50, "a": "\u00e4"}"#, r#"{"b":2.50,"a":"ä"}"#),
        ("[1]", r#"{"output":[1]}"#),
        ("null", r#"{"output":null}"#),
    ] {
        let success = Success::of(Body::trusted(outputs));
        let got = of(&stepped(&job, Event::Finish { attempt: 1, result: Ok(success) }));
        assert_eq!((&got["status"], &got["response"]), (&json!("success"), &json!(text)));
        assert_eq!((&got["duration_seconds"], &got["metadata"]), (&json!(2), &json!({})));
        assert_eq!(got["created_at"], Time(1_800_000_002_100_000).to_string());
    }
    for failure in Failure::ALL {
        for dispatched in [Dispatched::No, Dispatched::Yes] {
            for words in [r#"{"code":"OWN","x":1}"#, r#"{"code":""}"#, "[]", "\"words\"", "{}"] {
                let mut failed = Failed::said(failure, dispatched, "Nö.");
                failed.details = Some(Body::trusted(words));
                failed.message = Some(Body::trusted(if words == "{}" { "\"\"" } else { "\"Nö.\"" }));
                let mut policy = Policy::DEFAULT;
                policy.schedule.attempts_max = 1;
                let event = Event::Finish { attempt: 1, result: Err(failed) };
                let ended = machine::step(&job, event, Time(1_800_000_002_100_000), &policy).expect("it goes").job;
                assert!(ended.outcome().is_some(), "{failure} {dispatched:?}");
                let got = of(&ended);
                assert_eq!(got.as_object().map(serde_json::Map::len), Some(9), "BRIDGE-1.4");
                let is_timeout = failure == Failure::Timeout;
                assert_eq!(got["status"], if is_timeout { "timeout" } else { "error" }, "{got}");
                assert!(got["metadata"].to_string().contains("\"repeat\""), "{got}");
            }
        }
    }
    assert_eq!(of(&stepped(&job, Event::Cancel))["error_type"], "cancelled");
}

#[test]
fn a_request_of_the_bridge_takes_as_long_as_it_says_or_two_minutes() {
    let total = |seconds: Value| {
        let mut request = bridged();
        request["timeout_seconds"] = seconds;
        came(Kind::BridgeRequest, &request).0.request.limits.total
    };
    let seconds = std::time::Duration::from_secs;
    assert_eq!(came(Kind::BridgeRequest, &bridged()).0.request.limits.total, Some(seconds(120)));
    assert_eq!(
        (total(json!(0)), total(json!(7.0)), total(json!(900))),
        (Some(seconds(120)), Some(seconds(7)), Some(seconds(900)))
    );
    assert_eq!(total(json!(1e300)), None, "as long as anybody may");
}

#[test]
fn a_request_of_the_bridge_goes_to_every_contract_under_the_name_that_it_was_led_to() {
    let mut request = bridged();
    (request["context"], request["own"], request["phase"]) = (json!({"n": 1}), json!([1]), json!(3));
    let (mut job, document) = came(Kind::BridgeRequest, &request);
    let led = Request { work: "led".into(), ..(*job.request).clone() };
    job.request = Arc::new(led);
    let run = sent(&job, &document, Contract::Run);
    assert_eq!((&run["request_id"], &run["task_type"]), (&json!(job.id().to_string()), &json!("led")));
    assert_eq!(run["inputs"], json!({"prompt": "Größe?", "context": {"n": 1}}));
    assert_eq!(run["x_crosspoint"]["fields"]["bridge"], json!({"/own": [1]}));
    let left = std::time::Duration::from_millis(59_500);
    let outgoing = outgoing::request(&assignment(&job, 1, &document, Some(left)), &options(Contract::Bridge));
    let bridge =
        parsed(std::str::from_utf8(&outgoing.expect("it can be written").text).expect("text"), Kind::BridgeRequest);
    assert_eq!((&bridge["request_id"], &bridge["agent_name"]), (&json!(job.id().to_string()), &json!("led")));
    assert_eq!((&bridge["prompt"], &bridge["context"]["n"]), (&json!("Größe?"), &json!(1)));
    assert_eq!((&bridge["timeout_seconds"], &bridge["own"]), (&json!(60), &json!([1])));
    assert_eq!(bridge["created_at"], job.request.accepted_at.to_string(), "the caller gave none");
    assert_eq!(bridge["context"]["x_crosspoint"]["request_id"], request["request_id"]);
    for (kind, other) in [
        (Kind::RunRequest, json!({"request_id": "1", "task_type": "T", "inputs": {"a": 1}})),
        (Kind::TaskRequest, json!({"id": "1", "type": "T", "payload": {"prompt": "p", "context": {"c": 1}}})),
    ] {
        let (job, document) = came(kind, &other);
        let bridge = parsed(&sent(&job, &document, Contract::Bridge).to_string(), Kind::BridgeRequest);
        assert_eq!(bridge["agent_name"], "T");
        assert_eq!(bridge["prompt"], if kind == Kind::RunRequest { r#"{"a":1}"# } else { "p" });
    }
}

#[test]
fn what_a_bridge_agent_says_is_stored_once_and_comes_back_whole() {
    let (job, _) = came(Kind::BridgeRequest, &bridged());
    let (id, text) = (job.id(), r#"# Größe\n\"x\""#);
    let said = |status: &str, response: &str, error: &str, metadata: &str| {
        format!(
            r#"{{"request_id":"{id}","version":"1.0","status":"{status}","response":{response},{error},"created_at":"2026-01-01T00:00:00+02:00","duration_seconds":1.50,"metadata":{metadata}}}"#
        )
    };
    let none = r#""error_message":null,"error_type":null"#;
    let done = finished(&job, Kind::BridgeResponse, &said("success", &format!("\"{text}\""), none, r#"{"tokens":7}"#));
    let body = shown(&done);
    assert_eq!((&body["outputs"], &body["said"]["document"]["response"]), (&json!("# Größe\n\"x\""), &json!("")));
    let got = parsed(&told(&done, Contract::Bridge), Kind::BridgeResponse);
    assert_eq!((&got["request_id"], &got["response"]), (&bridged()["request_id"], &body["outputs"]));
    assert_eq!((&got["created_at"], &got["duration_seconds"]), (&json!("2026-01-01T00:00:00+02:00"), &json!(1.5)));
    assert_eq!(got["metadata"], json!({"tokens": 7}));
    let run = parsed(&told(&done, Contract::Run), Kind::RunResponse);
    assert_eq!(run["outputs"], json!({"output": "# Größe\n\"x\""}));
    // An output that is an object according to what was carried, and one that is a text beside an object.
    let carried = r#"{"x_crosspoint":{"from":"run.response","form":{"output":"json"}}}"#;
    let done = finished(&job, Kind::BridgeResponse, &said("success", r#""{\"a\": \"ä\"}""#, none, carried));
    assert_eq!(parsed(&told(&done, Contract::Run), Kind::RunResponse)["outputs"], json!({"a": "ä"}));
    let got = parsed(&told(&done, Contract::Bridge), Kind::BridgeResponse);
    assert_eq!(got["response"].as_str().and_then(|text| serde_json::from_str(text).ok()), Some(json!({"a": "ä"})));
    let carried = r#"{"x_crosspoint":{"from":"run.response","outputs":{"a":1}}}"#;
    let done = finished(&job, Kind::BridgeResponse, &said("success", "\"beside\"", none, carried));
    assert_eq!(parsed(&told(&done, Contract::Run), Kind::RunResponse)["outputs"], json!({"a": 1}));
    assert_eq!(parsed(&told(&done, Contract::Bridge), Kind::BridgeResponse)["response"], "beside");
    let error = r#""error_message":"m","error_type":"OwnError""#;
    let done = finished(&job, Kind::BridgeResponse, &said("error", "null", error, "{}"));
    let got = parsed(&told(&done, Contract::Bridge), Kind::BridgeResponse);
    assert_eq!(
        (&got["error_type"], &got["error_message"], &got["response"]),
        (&json!("OwnError"), &json!("m"), &Value::Null)
    );
}

#[test]
fn what_a_program_printed_is_a_text_to_those_who_want_one() {
    let (job, _) = came(Kind::BridgeRequest, &bridged());
    let response = |outputs: &Value| {
        let result = Ok(Success::of(Body::of(outputs)));
        let done = stepped(&job, Event::Finish { attempt: 1, result });
        parsed(&told(&done, Contract::Bridge), Kind::BridgeResponse)["response"].clone()
    };
    assert_eq!(response(&json!({"output": "Größe\n"})), "Größe\n");
    assert_eq!(response(&json!({"more": 1, "output": "x"})), r#"{"more":1,"output":"x"}"#);
    assert_eq!(response(&json!({"output": 1})), r#"{"output":1}"#);
}
