//! Where a run stands, as a tree of its stages: each with the iteration, the time and the counts of its last run. It is
//! drawn below the lines of the steps, on terminals that can draw it again.

use crosspoint_workflow::definition::Definition;
use unicode_width::UnicodeWidthStr;

use super::steps::{Decided, Step};
use crate::terminal::render;

/// Fewest and most stages that are drawn. Of a longer workflow those around the stage under way are.
const ROWS: (usize, usize) = (3, 40);

/// Lines of the terminal that are left to the steps above the tree.
const LINES_LEFT: usize = 6;

/// Widest column of stages.
const STAGE_WIDTH_MAX: usize = 24;

/// Where a run stands.
pub(super) struct Tree {
    title: String,
    rows: Vec<Row>,
    iteration: u32,
    /// The stage under way, or that waits for a person.
    current: Option<usize>,
    waits: bool,
    /// When the stage under way began.
    since: Option<jiff::Timestamp>,
}

struct Row {
    stage: String,
    last: Option<Last>,
}

/// The last run of a stage.
struct Last {
    iteration: u32,
    took: Option<f64>,
    word: String,
    counts: String,
}

impl Tree {
    pub(super) fn of(definition: &Definition) -> Tree {
        let row = |stage: &str| Row { stage: render::visible(stage), last: None };
        Tree {
            title: render::visible(definition.name()),
            rows: definition.stages().iter().map(|stage| row(&stage.id)).collect(),
            iteration: 1,
            current: Some(0),
            waits: false,
            since: None,
        }
    }

    pub(super) fn step(&mut self, step: &Step) {
        if !step.is_answer()
            && let Some(at) = self.find(&step.stage)
        {
            let (word, counts) = (step.word(), step.counts());
            self.rows[at].last = Some(Last { iteration: step.iteration, took: step.took, word, counts });
        }
        self.waits = matches!(step.decided, Some(Decided::Ask {}));
        match &step.decided {
            Some(Decided::Stage { id, iteration }) => {
                (self.current, self.iteration) = (self.find(&render::visible(id)), *iteration);
            }
            Some(Decided::Ask {}) => {}
            Some(Decided::Done {}) | None => self.current = None,
        }
    }

    pub(super) fn began(&mut self, since: Option<jiff::Timestamp>) {
        self.since = since;
    }

    fn find(&self, stage: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.stage == stage)
    }

    /// Draws the tree for a terminal of this size.
    pub(super) fn drawn(&self, now: jiff::Timestamp, width: usize, height: usize) -> String {
        let count = height.saturating_sub(LINES_LEFT).clamp(ROWS.0, ROWS.1).min(self.rows.len());
        let first = self.current.unwrap_or_default().saturating_sub(count / 2).min(self.rows.len() - count);
        let shown = &self.rows[first..first + count];
        let part = if count < self.rows.len() {
            format!(", stages {} to {} of {}", first + 1, first + count, self.rows.len())
        } else {
            String::new()
        };
        let stages = shown.iter().map(|row| row.stage.width()).max().unwrap_or_default().min(STAGE_WIDTH_MAX);
        let mut lines = vec![format!("{}, iteration {}{part}", self.title, self.iteration)];
        for (at, row) in shown.iter().enumerate() {
            let branch = if first + at + 1 == self.rows.len() { "`-" } else { "|-" };
            lines.push(format!("{branch} {}", self.row(row, stages, self.current == Some(first + at), now)));
        }
        // A line that wraps would not be taken back when the tree is drawn again.
        lines.iter().map(|line| cut(line.trim_end(), width.saturating_sub(1))).collect::<Vec<_>>().join("\n")
    }

    fn row(&self, row: &Row, stages: usize, is_current: bool, now: jiff::Timestamp) -> String {
        let stage = cut(&row.stage, stages);
        let pad = " ".repeat(stages.saturating_sub(stage.width()));
        let (iteration, took, word, counts) = match (&row.last, is_current && !self.waits) {
            (_, true) => {
                let took = self.since.map(|since| now.duration_since(since).as_secs_f64().max(0.0));
                (self.iteration, took, "runs", "")
            }
            (Some(last), false) if is_current => (last.iteration, last.took, "waits", last.counts.as_str()),
            (Some(last), false) => (last.iteration, last.took, last.word.as_str(), last.counts.as_str()),
            (None, false) => return stage,
        };
        let took = took.map(|took| format!("{took:.1} s")).unwrap_or_default();
        format!("{stage}{pad}  #{iteration:<3} {took:>8}  {word:<9} {counts}")
    }
}

/// Cuts a text off where it would be wider than this.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width;
    let fits = |character: &char| {
        let wide = unicode_width::UnicodeWidthChar::width(*character).unwrap_or_default();
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    };
    text.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(stages: usize) -> Tree {
        let stage = |at| format!("[[stage]]\nid = \"s{at}\"\nagent = \"a\"\naction = \"go\"\n");
        let text = format!("name = \"many\"\n{}", (1..=stages).map(stage).collect::<String>());
        Tree::of(&Definition::read(&text).expect("it has no mistakes"))
    }

    #[test]
    fn of_a_long_workflow_the_stages_around_the_one_under_way_are_drawn() {
        let mut tree = tree(1000);
        tree.current = Some(500);
        let drawn = tree.drawn(jiff::Timestamp::UNIX_EPOCH, 80, 24);
        assert!(drawn.starts_with("many, iteration 1, stages 492 to 509 of 1000\n|- s492\n"), "{drawn}");
        assert!(drawn.lines().any(|line| line.starts_with("|- s501  #1") && line.contains("runs")), "{drawn}");
        assert_eq!(drawn.lines().count(), 19);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut tree = tree(2);
        tree.rows[0].stage = "\u{7535}".repeat(60);
        for width in 1..60 {
            let drawn = tree.drawn(jiff::Timestamp::UNIX_EPOCH, width, 24);
            assert!(drawn.lines().all(|line| line.width() < width), "{width}: {drawn}");
        }
    }
}
