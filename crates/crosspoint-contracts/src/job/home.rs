//! The homes of a job. Every fact that more than one contract knows, or that the engine must know, has a home.
//!
//! A fact that only one contract knows has no home. It is kept beside the job by its place ([`super::Own`]).

use crate::fields::is_timestamp;
use crate::json::{Tape, Type, Value};

/// What a home holds. Values from outside are checked against this before they are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Any value.
    Anything,
    /// A string.
    Text,
    /// A string or null.
    TextOrNull,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// A string that is a date and time.
    Time,
    /// A boolean.
    Truth,
    /// A number.
    Number,
    /// A number from 0 up.
    Amount,
    /// A whole number within bounds.
    Whole(i64, i64),
    /// An object.
    Object,
    /// An array.
    Array,
    /// An array of strings.
    Texts,
    /// An object whose values are strings or arrays of strings.
    Paths,
}

impl Holds {
    pub(crate) fn accepts(self, value: Value<'_, '_>) -> bool {
        match self {
            Holds::Anything => true,
            Holds::Text => value.kind() == Type::String,
            Holds::TextOrNull => matches!(value.kind(), Type::String | Type::Null),
            Holds::Word(words) => value.text().is_some_and(|text| words.iter().any(|word| text == **word)),
            Holds::Time => value.text().is_some_and(is_timestamp),
            Holds::Truth => value.kind() == Type::Boolean,
            Holds::Number => value.float().is_some_and(f64::is_finite),
            Holds::Amount => value.float().is_some_and(|amount| amount.is_finite() && amount >= 0.0),
            Holds::Whole(least, most) => value.integer().is_some_and(|whole| (least..=most).contains(&whole)),
            Holds::Object => value.kind() == Type::Object,
            Holds::Array => value.kind() == Type::Array,
            Holds::Texts => is_texts(value),
            Holds::Paths => {
                value.kind() == Type::Object
                    && value.members().all(|(_, path)| path.kind() == Type::String || is_texts(path))
            }
        }
    }

    /// Whether a text, which is known to be JSON, is a value that this home holds. The text is scanned only where its
    /// first and last byte do not tell, so that megabytes are not read once more.
    pub(crate) fn accepts_json(self, json: &str) -> bool {
        let read = || Tape::scan(json.as_bytes()).is_ok_and(|tape| tape.root().is_some_and(|it| self.accepts(it)));
        self.accepts_by_ends(json).unwrap_or_else(read)
    }

    fn accepts_by_ends(self, json: &str) -> Option<bool> {
        let json = json.trim_matches([' ', '\t', '\n', '\r']).as_bytes();
        let ends = |first: u8, last: u8| json.len() >= 2 && json.first() == Some(&first) && json.last() == Some(&last);
        match self {
            Holds::Anything => Some(!json.is_empty()),
            Holds::Text => Some(ends(b'"', b'"')),
            Holds::Object => Some(ends(b'{', b'}')),
            Holds::Array => Some(ends(b'[', b']')),
            Holds::TextOrNull
            | Holds::Word(_)
            | Holds::Time
            | Holds::Truth
            | Holds::Number
            | Holds::Amount
            | Holds::Whole(..)
            | Holds::Texts
            | Holds::Paths => None,
        }
    }
}

fn is_texts(value: Value<'_, '_>) -> bool {
    value.kind() == Type::Array && value.items().all(|item| item.kind() == Type::String)
}

macro_rules! homes {
    ($($(#[$doc:meta])* $home:ident = $name:literal $holds:expr;)+) => {
        /// Where a fact about a job lives.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Home {
            $($(#[$doc])* $home),+
        }

        impl Home {
            /// All homes.
            pub const ALL: &'static [Home] = &[$(Home::$home),+];

            /// Returns the name under which the fact is carried.
            pub fn name(self) -> &'static str {
                match self { $(Home::$home => $name),+ }
            }

            pub(crate) fn holds(self) -> Holds {
                match self { $(Home::$home => $holds),+ }
            }
        }
    };
}

const ANY_WHOLE: Holds = Holds::Whole(i64::MIN, i64::MAX);

homes! {
    /// The caller's id for the request.
    RequestId = "request_id" Holds::Text;
    /// The caller's id for the task, where it differs from the request's id.
    TaskId = "task_id" Holds::Text;
    /// The kind of work.
    Work = "work" Holds::Text;
    /// The input, where it is an object.
    Input = "input" Holds::Object;
    /// The input, where it is a text.
    Prompt = "prompt" Holds::Text;
    /// Structured input that goes with the prompt.
    PromptContext = "prompt_context" Holds::Object;
    /// The caller that asks.
    Source = "source" Holds::Text;
    /// The agent that is asked.
    Target = "target" Holds::Text;
    /// The agents that had the work before.
    DelegationChain = "delegation_chain" Holds::Texts;
    /// The conversation that the work belongs to.
    Conversation = "conversation" Holds::Text;
    /// The job that the work is a part of.
    Parent = "parent" Holds::Text;
    /// The person for whom the work is done.
    User = "user" Holds::Text;
    /// When the request was written.
    CreatedAt = "created_at" Holds::Time;
    /// The workflow that the work belongs to.
    Workflow = "workflow" Holds::Text;
    /// The stage of that workflow.
    Stage = "stage" Holds::Text;
    /// The number of the stage.
    Phase = "phase" Holds::Whole(1, 9);
    /// The feature that is worked on.
    Feature = "feature" Holds::TextOrNull;
    /// The number of the iteration, from 1.
    Iteration = "iteration" Holds::Whole(1, i64::MAX);
    /// Paths of files that matter to the work, by name.
    Paths = "paths" Holds::Paths;
    /// What the previous agent has to say.
    Notes = "notes" Holds::Texts;
    /// How long the work may take, in seconds.
    SecondsMax = "seconds_max" Holds::Amount;
    /// How much memory the work may use, in megabytes.
    MemoryMax = "memory_mb_max" Holds::Amount;
    /// How the work may be tried again.
    RetryPolicy = "retry_policy" Holds::Object;
    /// How urgent the work is.
    Priority = "priority" Holds::Word(&["low", "normal", "high", "urgent"]);
    /// The trace, without hyphens.
    Trace = "trace" Holds::Text;
    /// The caller's span of the trace.
    Span = "span" Holds::Text;
    /// Values that travel along the trace.
    Baggage = "baggage" Holds::Object;
    /// The model that the caller wants.
    Model = "model" Holds::TextOrNull;
    /// The mode of the run: `DEMO` or `LIVE`.
    Mode = "mode" Holds::Text;
    /// How sensitive the work is.
    RiskTier = "risk_tier" Holds::Text;
    /// The subject area of the work.
    Domain = "domain" Holds::Text;
    /// The state of the job.
    State = "state" Holds::Word(super::STATES);
    /// How far the work is, from 0 to 100.
    Percent = "percent" Holds::Number;
    /// What is being done.
    Step = "step" Holds::Text;
    /// The number of the step.
    StepNumber = "step_number" ANY_WHOLE;
    /// What the step printed.
    StepOutput = "step_output" Holds::Text;
    /// Which part of a long output `StepOutput` is.
    OutputChunk = "output_chunk" Holds::Text;
    /// The question to a person.
    Question = "question" Holds::Object;
    /// The output, where it is an object.
    Outputs = "outputs" Holds::Object;
    /// The output, where it is a text.
    Text = "text" Holds::Text;
    /// Why the work failed, from the closed list.
    Failure = "failure" Holds::Word(super::FAILURES);
    /// The agent's own code, where it says more than the failure's name.
    Code = "code" Holds::Text;
    /// Why the work failed, in words.
    Message = "message" Holds::Text;
    /// What helps to understand the failure.
    Details = "details" Holds::Anything;
    /// Whether the caller can do something about the failure.
    Recoverable = "recoverable" Holds::Truth;
    /// The exit code of a program that failed.
    ExitCode = "exit_code" Holds::Whole(1, i64::MAX);
    /// What should happen next.
    Recommendation = "recommendation" Holds::Word(&["proceed", "retry", "escalate"]);
    /// When the work began.
    StartedAt = "started_at" Holds::Time;
    /// When the outcome or the state was reported.
    ReportedAt = "reported_at" Holds::Time;
    /// How long the work took, in seconds.
    Duration = "duration_seconds" Holds::Number;
    /// Graphics memory used, in megabytes.
    GpuMemory = "gpu_vram_mb" ANY_WHOLE;
    /// Processor time used, in milliseconds.
    CpuTime = "cpu_time_ms" ANY_WHOLE;
    /// The agent that did the work.
    Agent = "agent" Holds::Text;
    /// How many times the work was tried again.
    Retries = "retries" ANY_WHOLE;
    /// What an agent did that its contract forbids: the clauses, and what was seen.
    Violations = "violations" Holds::Array;
}
