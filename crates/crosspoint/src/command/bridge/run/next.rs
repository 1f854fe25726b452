//! What to do next with a program: at the start, and whenever it has ended. Nothing here acts.

use crosspoint_bridge::NEED_AGENT;

/// Which program left the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// None is known.
    NoRun,
    /// This very command.
    Us(Memory),
    /// Another command.
    Another(Memory),
}

/// How far the record says that a command has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// The program was begun, and nothing that it asked is noted.
    Begun,
    /// The program has asked.
    Asked,
}

/// The responses under the names of the requests that the record notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Responses {
    /// There are none: the program has taken what it was given.
    None,
    /// At least one is a recorded answer.
    Own,
    /// None of those that are there is a recorded answer.
    Foreign,
}

/// What a start finds in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Whether requests wait that the record notes.
    pub(super) noted: bool,
    /// Whether requests wait that the record does not note.
    pub(super) unknown: bool,
    pub(super) responses: Responses,
}

/// What is done with requests that no record knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    SetAside,
    /// The user says that they are this command's: `bridge run --resume`.
    Answer,
}

/// How to begin with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// Run it as it was typed.
    Fresh(Fresh),
    /// Run it with the argument that says that it goes on.
    Resumed(Responses),
    /// First answer what it asked before.
    Answer,
    /// First set aside what no record knows, and then answer what the record notes.
    SetAsideAndAnswer,
    /// The files here belong to another command.
    NotOurs,
}

/// Why a program is run from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    /// Nothing is there of an earlier run.
    First,
    /// Its last run was cut short before it asked anything.
    AskedNothing,
    /// A response is in the place of its recorded answer, and is not that answer (BRIDGE-4.4).
    ForeignResponse,
    /// Requests wait that are not its own, and are set aside first (BRIDGE-4.6).
    UnknownRequests,
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

pub(super) fn begin(found: Found, recorded: Recorded, unknown: Unknown) -> Begin {
    let waits = found.noted || found.unknown;
    match recorded {
        // Even if nothing waits: the user of that command was told that everything is kept, and a run of this command
        // would take its answers or be given them.
        Recorded::Another(Memory::Asked) => Begin::NotOurs,
        Recorded::Another(Memory::Begun) if waits => Begin::NotOurs,
        // Whatever waits was asked after this command was begun.
        Recorded::Us(_) if waits => Begin::Answer,
        Recorded::Us(Memory::Begun) => Begin::Fresh(Fresh::AskedNothing),
        Recorded::Us(Memory::Asked) => match found.responses {
            Responses::None | Responses::Own => Begin::Resumed(found.responses),
            Responses::Foreign => Begin::Fresh(Fresh::ForeignResponse),
        },
        Recorded::NoRun | Recorded::Another(Memory::Begun) => match (found.unknown, found.noted, unknown) {
            (false, false, _) => Begin::Fresh(Fresh::First),
            (false, true, _) | (true, _, Unknown::Answer) => Begin::Answer,
            (true, true, Unknown::SetAside) => Begin::SetAsideAndAnswer,
            (true, false, Unknown::SetAside) => Begin::Fresh(Fresh::UnknownRequests),
        },
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

    fn found(noted: bool, unknown: bool, responses: Responses) -> Found {
        Found { noted, unknown, responses }
    }

    const NOTHING: Found = Found { noted: false, unknown: false, responses: Responses::None };

    #[test]
    fn a_start_goes_on_with_what_is_its_own() {
        let us = |found, memory| begin(found, Recorded::Us(memory), Unknown::SetAside);
        for memory in [Memory::Begun, Memory::Asked] {
            for (noted, unknown) in [(true, false), (false, true), (true, true)] {
                // Between the program's end and the note of what it asked, its request is not noted yet.
                assert_eq!(us(found(noted, unknown, Responses::Foreign), memory), Begin::Answer);
            }
        }
        assert_eq!(us(NOTHING, Memory::Begun), Begin::Fresh(Fresh::AskedNothing));
        for responses in [Responses::None, Responses::Own] {
            assert_eq!(us(found(false, false, responses), Memory::Asked), Begin::Resumed(responses));
        }
        let foreign = found(false, false, Responses::Foreign);
        assert_eq!(us(foreign, Memory::Asked), Begin::Fresh(Fresh::ForeignResponse));
    }

    #[test]
    fn what_another_command_has_is_left_to_it() {
        let another = |found, memory| begin(found, Recorded::Another(memory), Unknown::Answer);
        assert_eq!(another(NOTHING, Memory::Asked), Begin::NotOurs);
        assert_eq!(another(NOTHING, Memory::Begun), Begin::Fresh(Fresh::First), "nothing is kept of it");
        for memory in [Memory::Begun, Memory::Asked] {
            assert_eq!(another(found(false, true, Responses::None), memory), Begin::NotOurs);
        }
    }

    #[test]
    fn what_no_record_knows_is_answered_only_if_the_user_says_so() {
        let start = |noted, unknown, how| begin(found(noted, unknown, Responses::Own), Recorded::NoRun, how);
        for how in [Unknown::SetAside, Unknown::Answer] {
            assert_eq!(start(false, false, how), Begin::Fresh(Fresh::First), "a response alone waits");
            assert_eq!(start(true, false, how), Begin::Answer);
        }
        assert_eq!(start(false, true, Unknown::SetAside), Begin::Fresh(Fresh::UnknownRequests));
        assert_eq!(start(true, true, Unknown::SetAside), Begin::SetAsideAndAnswer);
        assert_eq!(start(false, true, Unknown::Answer), Begin::Answer);
        assert_eq!(start(true, true, Unknown::Answer), Begin::Answer);
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
