//! Statuses that come again, and chunks that do.

use super::*;

#[tokio::test]
async fn a_status_that_comes_again_is_stored_once() {
    let mut attempted = Attempted::new().await;
    let first = || Status {
        message_id: Some(Uuid::from_u128(77)),
        state: Some(WorkState::Running),
        percent: Some(10),
        number: 1,
        name: "build".into(),
        output: Bytes::from_static(b"compiling\n"),
        chunk: None,
    };
    assert_eq!(attempted.take(first()).await.expect("it is taken"), Taken::default());
    let repeat = Taken { is_repeat: true, ..Taken::default() };
    assert_eq!(attempted.take(first()).await.expect("it is taken"), repeat, "the same message");
    let again = Status { message_id: Some(Uuid::from_u128(78)), ..first() };
    assert_eq!(attempted.take(again).await.expect("it is taken"), repeat, "a sign of life, under a new id");
    attempted.restart().await;
    let again = Status { message_id: None, ..first() };
    assert_eq!(attempted.take(again).await.expect("it is taken"), repeat, "also after a restart");
    assert_eq!(attempted.text(), "compiling\n");
    let others = [
        Status { percent: Some(11), ..first() },
        Status { state: Some(WorkState::StepCompleted), ..first() },
        Status { number: 2, ..first() },
        Status { name: "link".into(), ..first() },
        Status { output: Bytes::from_static(b"linking\n"), ..first() },
    ];
    for (other, number) in others.into_iter().zip(2..) {
        let other = Status { message_id: None, ..other };
        assert_eq!(attempted.take(other).await.expect("it is taken"), Taken::default());
        assert_eq!(attempted.text().lines().count(), number, "a status that says something else is a new one");
    }
    assert_eq!(attempted.take(first()).await.expect("it is taken"), repeat, "that very message, late");
}

#[tokio::test]
async fn the_same_words_are_new_if_another_status_came_in_between() {
    let mut attempted = Attempted::new().await;
    attempted.plain(1, "tick\n").await;
    attempted.plain(1, "").await;
    attempted.plain(1, "tick\n").await;
    assert_eq!(attempted.text(), "tick\ntick\n");
    attempted.chunk((0, 3), Some(3), "one").await;
    attempted.plain(1, "tick\n").await;
    assert_eq!(attempted.text(), "tick\ntick\nonetick\n");
}

#[tokio::test]
async fn a_status_that_did_not_get_into_the_output_is_no_repeat_when_it_comes_again() {
    for is_stored in [false, true] {
        let mut attempted = Attempted::new().await;
        attempted.plain(1, "first\n").await;
        attempted.stored.dies = Some((0, is_stored));
        let lost = |id| Status {
            message_id: Some(Uuid::from_u128(id)),
            state: None,
            percent: None,
            number: 1,
            name: "step".into(),
            output: Bytes::from_static(b"second\n"),
            chunk: None,
        };
        assert!(attempted.take(lost(77)).await.is_err(), "it is not acknowledged");
        attempted.restart().await;
        let taken = attempted.take(lost(77)).await.expect("it is taken");
        assert_eq!(taken.is_repeat, is_stored);
        assert_eq!(attempted.text(), "first\nsecond\n");
    }
}

#[tokio::test]
async fn text_that_waits_is_not_taken_twice_either() {
    let mut attempted = Attempted::new().await;
    attempted.chunk((0, 3), Some(6), "one").await;
    assert!(!attempted.plain(5, "[a line]").await.is_repeat);
    assert!(attempted.plain(5, "[a line]").await.is_repeat);
    attempted.restart().await;
    assert!(attempted.plain(5, "[a line]").await.is_repeat);
    attempted.chunk((3, 6), Some(6), "two").await;
    assert_eq!(attempted.text(), "onetwo[a line]");
}

#[tokio::test]
async fn a_chunk_that_comes_again_changes_nothing_also_after_the_end_of_its_set() {
    let mut attempted = Attempted::new().await;
    for _ in 0..2 {
        assert_eq!(attempted.chunk((0, 3), Some(6), "one").await, []);
        assert_eq!(attempted.chunk((3, 6), Some(6), "two").await, []);
        attempted.restart().await;
    }
    attempted.plain(6, "next\n").await;
    assert_eq!(attempted.chunk((3, 6), Some(6), "two").await, [], "late, but as it was");
    assert_eq!(attempted.chunk((3, 6), Some(6), "TWO").await, [Refusal::Differs { offset: 3 }]);
    assert_eq!(attempted.text(), "onetwonext\n");
}

#[tokio::test]
async fn an_agent_that_repeats_a_refused_chunk_is_told_once() {
    let mut attempted = Attempted::new().await;
    attempted.chunk((0, 3), Some(6), "one").await;
    assert_eq!(attempted.chunk((0, 3), Some(6), "two").await, [Refusal::Differs { offset: 0 }]);
    assert_eq!(attempted.chunk((0, 3), Some(6), "two").await, [], "a sign of life, under a new id");
    attempted.restart().await;
    assert_eq!(attempted.chunk((0, 3), Some(6), "two").await, []);
    assert_eq!(attempted.chunk((0, 3), Some(6), "six").await, [Refusal::Differs { offset: 0 }], "another mistake");
    assert_eq!(attempted.chunk((3, 6), Some(6), "two").await, []);
    assert_eq!(attempted.text(), "onetwo");
}

#[tokio::test]
async fn another_output_in_the_same_step_is_another_set() {
    let mut attempted = Attempted::new().await;
    attempted.chunk((0, 6), Some(6), "onetwo").await;
    assert_eq!(attempted.chunk((0, 3), Some(9), "uno").await, [], "the first one was complete");
    assert_eq!(attempted.chunk((3, 9), Some(9), "duetre").await, []);
    assert_eq!(attempted.text(), "onetwounoduetre");
    attempted.restart().await;
    assert_eq!(attempted.chunk((0, 3), None, "uno").await, []);
    assert_eq!(attempted.text(), "onetwounoduetre");
}
