//! What to do next with a program: at the start, and whenever it has ended. Nothing here acts.

use crosspoint_bridge::NEED_AGENT;

/// Which program left the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// None is known.
    Nobody,
    /// This very command.
    Us,
    /// Another command.
    Another,
}

/// How to begin with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// Run it as it was typed.
    Fresh,
    /// Run it with the argument that says that it goes on.
    Resumed,
    /// First answer what it asked before.
    Answer,
    /// The files here belong to another command.
    NotOurs,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Exit(u8),
    /// By this signal.
    Signal(i32),
}

/// How often the program was resumed, and how often it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resumptions {
    pub(super) done: u32,
    pub(super) max: u32,
}

/// What the end of a program means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// It is done: nothing is remembered of it, and the driver exits with its exit code.
    Done(u8),
    /// It was cut short: what is remembered stays, and the driver exits with this code.
    CutShort(u8),
    /// The driver was asked to stop, and the program stopped too: what is remembered stays.
    Interrupted,
    /// It needs an agent.
    Answer,
    /// It says that it needs an agent, and does not say for what.
    NothingAsked,
    /// It needs an agent once more than it may (BRIDGE-8.4).
    TooOften,
}

/// What shells add to the number of a signal for an exit code.
const BY_SIGNAL: i32 = 128;

/// The exit code of shells for a program that was interrupted.
const INTERRUPTED: u8 = 130;

pub(super) fn begin(requests: usize, recorded: Recorded) -> Begin {
    match (requests, recorded) {
        // BRIDGE-4.4: only a recorded answer to this very command is gone on with at once.
        (0, Recorded::Us) => Begin::Resumed,
        (0, Recorded::Nobody) => Begin::Fresh,
        (_, Recorded::Nobody | Recorded::Us) => Begin::Answer,
        // Even if nothing waits: the user of that command was told that everything is kept, and a run of this command
        // would take its answers or be given them.
        (_, Recorded::Another) => Begin::NotOurs,
    }
}

pub(super) fn after(ended: Ended, asked_to_stop: bool, requests: usize, resumptions: Resumptions) -> After {
    match ended {
        Ended::Exit(0) => After::Done(0),
        Ended::Exit(_) | Ended::Signal(_) if asked_to_stop => After::Interrupted,
        Ended::Exit(NEED_AGENT) if requests == 0 => After::NothingAsked,
        Ended::Exit(NEED_AGENT) if resumptions.done >= resumptions.max => After::TooOften,
        Ended::Exit(NEED_AGENT) => After::Answer,
        Ended::Exit(INTERRUPTED) => After::CutShort(INTERRUPTED),
        Ended::Exit(code) => After::Done(code),
        Ended::Signal(signal) => After::CutShort(u8::try_from(BY_SIGNAL + signal).unwrap_or(u8::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Resumptions = Resumptions { done: 0, max: 5 };

    #[test]
    fn a_start_goes_on_with_what_is_its_own() {
        assert_eq!(begin(0, Recorded::Nobody), Begin::Fresh);
        assert_eq!(begin(0, Recorded::Us), Begin::Resumed);
        assert_eq!(begin(0, Recorded::Another), Begin::NotOurs);
        assert_eq!(begin(1, Recorded::Nobody), Begin::Answer);
        assert_eq!(begin(3, Recorded::Us), Begin::Answer);
        assert_eq!(begin(1, Recorded::Another), Begin::NotOurs);
    }

    #[test]
    fn only_one_exit_code_asks_for_an_agent() {
        for code in 0..=u8::MAX {
            let expected = match code {
                42 => After::Answer,
                130 => After::CutShort(130),
                code => After::Done(code),
            };
            assert_eq!(after(Ended::Exit(code), false, 1, FIRST), expected);
        }
        assert_eq!(after(Ended::Exit(42), false, 0, FIRST), After::NothingAsked);
    }

    #[test]
    fn it_is_resumed_as_often_as_it_may_and_no_more() {
        let resumed = |done| after(Ended::Exit(42), false, 1, Resumptions { done, max: 2 });
        assert_eq!([resumed(0), resumed(1), resumed(2)], [After::Answer, After::Answer, After::TooOften]);
        // What is wrong with the program itself is reported first.
        assert_eq!(after(Ended::Exit(42), false, 0, Resumptions { done: 2, max: 2 }), After::NothingAsked);
    }

    #[test]
    fn signals_are_passed_on_as_shells_do() {
        assert_eq!(after(Ended::Signal(9), false, 0, FIRST), After::CutShort(137));
        assert_eq!(after(Ended::Signal(2), false, 1, FIRST), After::CutShort(130));
        // Real-time signals go up to 64.
        assert_eq!(after(Ended::Signal(64), false, 0, FIRST), After::CutShort(192));
    }

    #[test]
    fn who_was_asked_to_stop_and_is_done_is_done() {
        assert_eq!(after(Ended::Exit(0), true, 0, FIRST), After::Done(0));
        for ended in [Ended::Exit(1), Ended::Exit(42), Ended::Exit(130), Ended::Signal(2), Ended::Signal(15)] {
            assert_eq!(after(ended, true, 1, FIRST), After::Interrupted);
        }
    }
}
