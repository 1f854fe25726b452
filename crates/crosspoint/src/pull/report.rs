//! Reports of sessions: checks that they are about attempts that the session holds, and passes them to the engine.

use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::reply::{Failed, Progress, Question, Success};
use crosspoint_engine::core::Grip;
use crosspoint_engine::id::JobId;
use crosspoint_engine::machine::Event;
use crosspoint_engine::runtime::{Engine, Heard};
use uuid::Uuid;

use super::queue::Queue;
use super::{Call, JoinFirst, Queues, lock};

/// One report of a session about an attempt.
pub(crate) struct Report {
    pub(crate) id: JobId,
    pub(crate) attempt: u32,
    pub(crate) body: ReportBody,
}

/// What a report says.
pub(crate) enum ReportBody {
    /// The attempt is alive.
    Heard,
    /// How far the attempt has come.
    Progress(Progress),
    /// The attempt needs an answer from a person.
    Ask {
        /// The number of the question within this attempt, from 1, by which a repeat is recognised.
        number: u32,
        question: Question,
    },
    /// A rule was broken, in a few words; nothing else changes.
    Broken(Box<str>),
    /// The attempt is given back: nothing of it was begun, and nothing will be.
    Declined,
    /// How the attempt ended.
    Ended(Result<Success, Failed>),
}

/// Why reports are not taken. If one is not, none is.
pub(crate) enum Mistake {
    /// The session is not known.
    JoinFirst,
    /// The report at this index asks before the previous question was answered.
    AsksTooMuch(usize),
    /// The server is about to end, or nothing can be committed. The session must report again.
    NotNow,
}

/// What is to be done with a report.
enum Course {
    Tell(Grip, Event),
    /// Recorded beside the job.
    Record {
        attempt: u32,
        rule: Box<str>,
    },
    Say(Heard),
}

impl Queues {
    /// Passes the reports of a session to the engine. When it returns, the reports that were taken are on disk.
    pub(crate) async fn report(
        &self,
        engine: &Engine,
        name: &Arc<str>,
        session: Uuid,
        reports: Vec<Report>,
    ) -> Result<Vec<Heard>, Mistake> {
        let queue = self.known(name).map_err(|JoinFirst| Mistake::JoinFirst)?;
        let _call = Call::begin(&queue, session).map_err(|JoinFirst| Mistake::JoinFirst)?;
        // One call after the other: of two calls with the same report, the second must find what came of the first.
        let turn = self.turn(name, session).map_err(|JoinFirst| Mistake::JoinFirst)?;
        let _turn = turn.lock().await;
        let ends: Vec<Option<(JobId, u32)>> = reports.iter().map(Report::ends).collect();
        let courses = {
            let mut queue = lock(&queue);
            let courses = reports.into_iter().enumerate().map(|(at, report)| course(&mut queue, session, at, report));
            courses.collect::<Result<Vec<(JobId, Course)>, Mistake>>()?
        };
        let mut answers: Vec<Option<Heard>> = Vec::with_capacity(courses.len());
        let (mut events, mut broken) = (Vec::with_capacity(courses.len()), Vec::new());
        for (id, course) in courses {
            match course {
                Course::Tell(grip, event) => {
                    answers.push(None);
                    events.push((id, grip, event));
                }
                Course::Record { attempt, rule } => {
                    answers.push(Some(Heard::Taken));
                    broken.push(((id, attempt), rule));
                }
                Course::Say(heard) => answers.push(Some(heard)),
            }
        }
        for (at, rule) in broken {
            // A rule is recorded once, also when one call reports it twice.
            if !lock(&queue).knows_broken(session, at, &rule) {
                engine.record_broken(at.0, rule.clone()).await.ok_or(Mistake::NotNow)?;
                lock(&queue).note_broken(session, at, &rule);
            }
        }
        let heard = match events.is_empty() {
            true => Vec::new(),
            false => engine.report(name, events).await.ok_or(Mistake::NotNow)?,
        };
        let mut queue = lock(&queue);
        for (id, attempt) in ends.into_iter().flatten() {
            queue.done_with(session, id, attempt);
        }
        let mut heard = heard.into_iter();
        Ok(answers.into_iter().map(|answer| answer.or_else(|| heard.next()).unwrap_or(Heard::Gone)).collect())
    }

    /// Stores a block of output at its place.
    pub(crate) async fn output(
        &self,
        engine: &Engine,
        name: &Arc<str>,
        session: Uuid,
        (id, attempt): (JobId, u32),
        (offset, block): (u64, Bytes),
    ) -> Result<Heard, Mistake> {
        let queue = self.known(name).map_err(|JoinFirst| Mistake::JoinFirst)?;
        let _call = Call::begin(&queue, session).map_err(|JoinFirst| Mistake::JoinFirst)?;
        let is_held = lock(&queue).held_by(session, id, attempt).map_err(|JoinFirst| Mistake::JoinFirst)?.is_some();
        let (grip, event) = if is_held {
            (Grip::Holds, Event::Output { attempt, offset, block: Block(block) })
        } else {
            (Grip::Lost, Event::Heard { attempt })
        };
        let heard = engine.report(name, vec![(id, grip, event)]).await.ok_or(Mistake::NotNow)?;
        Ok(heard.first().copied().unwrap_or(Heard::Gone))
    }
}

fn course(queue: &mut Queue, session: Uuid, at: usize, report: Report) -> Result<(JobId, Course), Mistake> {
    let Report { id, attempt, body } = report;
    let held = queue.held_by(session, id, attempt).map_err(|JoinFirst| Mistake::JoinFirst)?;
    let Some(queued) = held else {
        return Ok((
            id,
            match body {
                // The engine knows whether the agent ever had the attempt, and whether a result still matters.
                ReportBody::Ended(result) => Course::Tell(Grip::Lost, Event::Finish { attempt, result }),
                ReportBody::Declined
                | ReportBody::Heard
                | ReportBody::Progress(_)
                | ReportBody::Broken(_)
                | ReportBody::Ask { .. } => Course::Tell(Grip::Lost, Event::Heard { attempt }),
            },
        ));
    };
    Ok((
        id,
        match body {
            ReportBody::Heard => Course::Tell(Grip::Holds, Event::Heard { attempt }),
            ReportBody::Progress(progress) => Course::Tell(Grip::Holds, Event::Progress { attempt, progress }),
            ReportBody::Ask { number, question } => {
                let answered = queued.job.running().map_or(0, |running| running.asked);
                match number.checked_sub(answered) {
                    Some(1) => Course::Tell(Grip::Holds, Event::Ask { attempt, question, answered: Some(answered) }),
                    Some(2..) => return Err(Mistake::AsksTooMuch(at)),
                    // It was asked and answered: the answer comes with the next call for work.
                    Some(0) | None => Course::Say(Heard::Taken),
                }
            }
            ReportBody::Broken(rule) => Course::Record { attempt, rule },
            ReportBody::Declined => Course::Tell(Grip::Holds, Event::Withdrawn { attempt }),
            ReportBody::Ended(result) => Course::Tell(Grip::Holds, Event::Finish { attempt, result }),
        },
    ))
}

impl Report {
    /// The attempt that this report ends, if it does.
    pub(crate) fn ends(&self) -> Option<(JobId, u32)> {
        match self.body {
            ReportBody::Ended(_) | ReportBody::Declined => Some((self.id, self.attempt)),
            ReportBody::Heard | ReportBody::Progress(_) | ReportBody::Broken(_) | ReportBody::Ask { .. } => None,
        }
    }
}
