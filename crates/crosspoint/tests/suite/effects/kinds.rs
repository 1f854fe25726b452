//! The kinds of agents, and what is promised of the effects of each. The table of docs/jobs.md says the same in words.

/// What is promised of the effects of a job, while answers are lost, agents are killed and attempts are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// It completes. There is no effect but its outcome.
    Completed,
    /// It completes, and has one effect.
    Once,
    /// It completes with one effect; or it fails with repeat `unknown`, and has one effect or none.
    AtMostOnce,
    /// Work that died with its process is begun again: no process has two effects, and one effect follows another only
    /// because a process was killed.
    OnceEachLife,
    /// The operator said that it may be done again (`repeatable = true`).
    AtLeastOnce,
}

/// One kind of agent. Its work has the same name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) jobs: u32,
    pub(super) promise: Promise,
    /// Most jobs of which it may stay unknown whether they were done: a server that gave up on everything would keep
    /// its promises otherwise.
    pub(super) unknown_max: u32,
    /// Whether there is a connection between server and agent, on which answers can be lost.
    pub(super) connected: bool,
}

const fn kind(name: &'static str, jobs: u32, promise: Promise, unknown_max: u32, connected: bool) -> Kind {
    Kind { name, jobs, promise, unknown_max, connected }
}

impl Kind {
    /// Whether some of its jobs have one attempt only. If such a job never began, the operator has it begun again.
    pub(super) fn is_tried_by_hand(&self) -> bool {
        self.connected && self.promise == Promise::AtMostOnce
    }
}

/// All kinds. Agents made with `crosspoint-agent` have two works each, of which one is done at most once.
pub(super) const KINDS: &[Kind] = &[
    kind("builtin", 200, Promise::Completed, 0, false),
    kind("exec", 100, Promise::OnceEachLife, 0, false),
    kind("exec_once", 100, Promise::AtMostOnce, 20, false),
    kind("program", 100, Promise::OnceEachLife, 0, false),
    kind("program_once", 100, Promise::AtMostOnce, 20, false),
    kind("joined", 100, Promise::OnceEachLife, 10, true),
    kind("joined_once", 100, Promise::AtMostOnce, 40, true),
    kind("run", 200, Promise::AtMostOnce, 140, true),
    kind("run_repeatable", 200, Promise::AtLeastOnce, 20, true),
    kind("task", 200, Promise::AtMostOnce, 100, true),
    kind("pushed", 200, Promise::AtMostOnce, 50, true),
    kind("pulled", 200, Promise::AtMostOnce, 50, true),
    kind("envelope", 200, Promise::AtMostOnce, 140, true),
    kind("bridge", 200, Promise::Once, 0, false),
    kind("sdk_run", 100, Promise::AtMostOnce, 90, true),
    kind("sdk_run_once", 100, Promise::AtMostOnce, 90, true),
    kind("sdk_task", 100, Promise::AtMostOnce, 80, true),
    kind("sdk_task_once", 100, Promise::AtMostOnce, 80, true),
    kind("sdk_pushed", 100, Promise::OnceEachLife, 20, true),
    kind("sdk_pushed_once", 100, Promise::AtMostOnce, 60, true),
    kind("sdk_pulled", 100, Promise::OnceEachLife, 20, true),
    kind("sdk_pulled_once", 100, Promise::AtMostOnce, 60, true),
    kind("sdk_envelope", 100, Promise::AtMostOnce, 90, true),
    kind("sdk_envelope_once", 100, Promise::AtMostOnce, 90, true),
];
