//! What sessions report: whether it is about something they have, and telling the engine.

use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::reply::{Failed, Progress, Question, Success};
use crosspoint_engine::core::Grip;
use crosspoint_engine::id::JobId;
use crosspoint_engine::machine::Event;
use crosspoint_engine::runtime::{Engine, Heard};
use uuid::Uuid;

use super::counter::Counter;
use super::{Call, Desk, JoinFirst, lock};

/// One thing that a session says about an attempt.
pub(crate) struct Report {
    pub(crate) id: JobId,
    pub(crate) attempt: u32,
    pub(crate) said: Said,
}

/// What it says.
pub(crate) enum Said {
    /// It is alive.
    Heard,
    /// How far it is.
    Progress(Progress),
    /// It needs a person.
    Ask {
        /// Which question of this attempt it is, from 1: so that a repeat is known as one.
        number: u32,
        question: Question,
    },
    /// A rule was broken, in a few words; nothing else changes.
    Broken(Box<str>),
    /// It is given back: nothing of it was begun, and nothing will be.
    Declined,
    /// How it ended.
    Ended(Result<Success, Failed>),
}

/// Why reports are not taken. None of them was.
pub(crate) enum Mistake {
    /// Nobody here knows the session.
    JoinFirst,
    /// The report at this place asks before its last question was answered.
    AsksTooMuch(usize),
    /// We are about to end, or nothing can be committed; it is to be said again.
    NotNow,
}

/// What is to be done about a report.
enum Course {
    Tell(Grip, Event),
    /// It is recorded beside the job.
    Record {
        attempt: u32,
        rule: Box<str>,
    },
    Say(Heard),
}

impl Desk {
    /// Tells the engine what a session reports. When it returns, what was taken is on disk.
    pub(crate) async fn report(
        &self,
        engine: &Engine,
        name: &Arc<str>,
        session: Uuid,
        reports: Vec<Report>,
    ) -> Result<Vec<Heard>, Mistake> {
        let counter = self.known(name).map_err(|JoinFirst| Mistake::JoinFirst)?;
        let _call = Call::begin(&counter, session).map_err(|JoinFirst| Mistake::JoinFirst)?;
        // One after the other: of two that say the same, the second must find what came of the first.
        let turn = self.turn(name, session).map_err(|JoinFirst| Mistake::JoinFirst)?;
        let _turn = turn.lock().await;
        let ends: Vec<Option<(JobId, u32)>> = reports.iter().map(Report::ends).collect();
        let courses = {
            let mut counter = lock(&counter);
            let courses = reports.into_iter().enumerate().map(|(at, report)| course(&mut counter, session, at, report));
            courses.collect::<Result<Vec<(JobId, Course)>, Mistake>>()?
        };
        let mut said: Vec<Option<Heard>> = Vec::with_capacity(courses.len());
        let (mut events, mut broken) = (Vec::with_capacity(courses.len()), Vec::new());
        for (id, course) in courses {
            match course {
                Course::Tell(grip, event) => {
                    said.push(None);
                    events.push((id, grip, event));
                }
                Course::Record { attempt, rule } => {
                    said.push(Some(Heard::Taken));
                    broken.push(((id, attempt), rule));
                }
                Course::Say(heard) => said.push(Some(heard)),
            }
        }
        for (at, rule) in broken {
            // Also within one call a rule is recorded once.
            if !lock(&counter).knows_broken(session, at, &rule) {
                engine.record_broken(at.0, rule.clone()).await.ok_or(Mistake::NotNow)?;
                lock(&counter).note_broken(session, at, &rule);
            }
        }
        let told = match events.is_empty() {
            true => Vec::new(),
            false => engine.report(name, events).await.ok_or(Mistake::NotNow)?,
        };
        let mut counter = lock(&counter);
        for (id, attempt) in ends.into_iter().flatten() {
            counter.done_with(session, id, attempt);
        }
        let mut told = told.into_iter();
        Ok(said.into_iter().map(|said| said.or_else(|| told.next()).unwrap_or(Heard::Gone)).collect())
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
        let counter = self.known(name).map_err(|JoinFirst| Mistake::JoinFirst)?;
        let _call = Call::begin(&counter, session).map_err(|JoinFirst| Mistake::JoinFirst)?;
        let is_held = lock(&counter).held_by(session, id, attempt).map_err(|JoinFirst| Mistake::JoinFirst)?.is_some();
        let (grip, event) = if is_held {
            (Grip::Holds, Event::Output { attempt, offset, block: Block(block) })
        } else {
            (Grip::Lost, Event::Heard { attempt })
        };
        let told = engine.report(name, vec![(id, grip, event)]).await.ok_or(Mistake::NotNow)?;
        Ok(told.first().copied().unwrap_or(Heard::Gone))
    }
}

fn course(counter: &mut Counter, session: Uuid, at: usize, report: Report) -> Result<(JobId, Course), Mistake> {
    let Report { id, attempt, said } = report;
    let held = counter.held_by(session, id, attempt).map_err(|JoinFirst| Mistake::JoinFirst)?;
    let Some(laid) = held else {
        return Ok((
            id,
            match said {
                // The engine knows whether the agent had it at all, and whether a result still matters.
                Said::Ended(result) => Course::Tell(Grip::Lost, Event::Finish { attempt, result }),
                Said::Declined | Said::Heard | Said::Progress(_) | Said::Broken(_) | Said::Ask { .. } => {
                    Course::Tell(Grip::Lost, Event::Heard { attempt })
                }
            },
        ));
    };
    Ok((
        id,
        match said {
            Said::Heard => Course::Tell(Grip::Holds, Event::Heard { attempt }),
            Said::Progress(progress) => Course::Tell(Grip::Holds, Event::Progress { attempt, progress }),
            Said::Ask { number, question } => {
                let answered = laid.job.running().map_or(0, |running| running.asked);
                match number.checked_sub(answered) {
                    Some(1) => Course::Tell(Grip::Holds, Event::Ask { attempt, question }),
                    Some(2..) => return Err(Mistake::AsksTooMuch(at)),
                    // It was asked, and answered: the answer comes with the next call for work.
                    Some(0) | None => Course::Say(Heard::Taken),
                }
            }
            Said::Broken(rule) => Course::Record { attempt, rule },
            Said::Declined => Course::Tell(Grip::Holds, Event::Withdrawn { attempt }),
            Said::Ended(result) => Course::Tell(Grip::Holds, Event::Finish { attempt, result }),
        },
    ))
}

impl Report {
    /// The attempt that it ends.
    pub(crate) fn ends(&self) -> Option<(JobId, u32)> {
        match self.said {
            Said::Ended(_) | Said::Declined => Some((self.id, self.attempt)),
            Said::Heard | Said::Progress(_) | Said::Broken(_) | Said::Ask { .. } => None,
        }
    }
}
