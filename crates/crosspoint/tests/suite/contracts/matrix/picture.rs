//! The table as one picture: doors across, agents down, and in each field how many cases hold.

use super::agents::{Kind, Way};
use super::cases::CASES;
use super::doors::Door;
use super::table::Table;

/// Where the picture is kept.
pub(super) const KEPT: &str = "docs/pictures/matrix.svg";

const WIDTH: usize = 860;
const LEFT: usize = 226;
const TOP: usize = 92;
const COLUMN: usize = 77;
const ROW: usize = 26;

/// Colours for light and for dark, like those of the other pictures.
const STYLE: &str = "<style>
  .paper { fill: #ffffff; stroke: #d0d7de }
  .all { fill: #dafbe1; stroke: #1a7f37 }
  .some { fill: #f6f8fa; stroke: #8c959f }
  text { font: 14px system-ui, sans-serif; fill: #24292f }
  .strong { font-weight: bold }
  .quiet { fill: #57606a; font-size: 12.5px }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; stroke: #3d444d }
    .all { fill: #12261e; stroke: #3fb950 }
    .some { fill: #151b23; stroke: #6e7681 }
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
  }
</style>
";

pub(super) fn picture(table: &Table) -> String {
    let height = TOP + ROW * Kind::ALL.len() + 40;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title description\">\n\
         <title id=\"title\">Every caller reaches every agent</title>\n\
         <desc id=\"description\">{}</desc>\n{STYLE}",
        described(table)
    );
    out += &format!(
        "<rect class=\"paper\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n",
        WIDTH - 1,
        height - 1
    );
    out += &text("strong", 16, 30, "start", &format!("{} cases, every caller, every agent", CASES.len()));
    out += &text("quiet", 16, TOP - 14, "start", "agents");
    out += &text("quiet", LEFT - 12, TOP - 30, "end", "callers");
    for (at, door) in Door::ALL.into_iter().enumerate() {
        let (contract, manner) = caller(door);
        let middle = LEFT + COLUMN * at + COLUMN / 2;
        out += &text("strong", middle, TOP - 30, "middle", contract);
        out += &text("quiet", middle, TOP - 14, "middle", manner);
    }
    for (row, kind) in Kind::ALL.into_iter().enumerate() {
        out += &text("plain", 16, TOP + ROW * row + 18, "start", agent(kind));
        (0..Door::ALL.len()).for_each(|column| out += &field(table, (column, Door::ALL[column]), (row, kind)));
    }
    let legend =
        "28 + 5: 28 cases hold, and 5 make no sense between these two. A case that fails makes the tests fail.";
    out += &text("quiet", 16, height - 16, "start", legend);
    out + "</svg>\n"
}

fn field(table: &Table, (column, door): (usize, Door), (row, kind): (usize, Kind)) -> String {
    let (right, not_here) = table.counts(door, kind);
    let class = if not_here == 0 { "all" } else { "some" };
    let (x, y) = (LEFT + COLUMN * column, TOP + ROW * row);
    let rectangle = format!(
        "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"5\"/>\n",
        x + 3,
        y + 2,
        COLUMN - 6,
        ROW - 4
    );
    let (middle, line) = (x + COLUMN / 2, y + 18);
    if not_here == 0 {
        return rectangle + &text("plain", middle, line, "middle", &right.to_string());
    }
    // Two texts, because not all readers of pictures place the parts of one alike.
    let held = text("plain", middle - 2, line, "end", &right.to_string());
    rectangle + &held + &text("quiet", middle + 4, line, "start", &format!("+ {not_here}"))
}

fn text(class: &str, x: usize, y: usize, anchor: &str, words: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{words}</text>\n")
}

/// The whole in words, for those who cannot see it.
fn described(table: &Table) -> String {
    let pairs = Door::ALL.into_iter().flat_map(|door| Kind::ALL.map(|kind| table.counts(door, kind)));
    let (right, not_here) = pairs.fold((0, 0), |sums, (right, not_here)| (sums.0 + right, sums.1 + not_here));
    format!(
        "{} sorts of callers across, {} sorts of agents down, and {} cases for each pair: {right} hold, and {not_here} \
         make no sense between the two.",
        Door::ALL.len(),
        Kind::ALL.len(),
        CASES.len()
    )
}

/// The contract of a door's callers, and what they do.
fn caller(door: Door) -> (&'static str, &'static str) {
    match door {
        Door::Native => ("native", ""),
        Door::Sync => ("run", "sync"),
        Door::Stream => ("run", "stream"),
        Door::Task => ("task", ""),
        Door::Bridge => ("bridge", "by files"),
        Door::Message => ("message", "asks again"),
        Door::Callback => ("message", "callback"),
        Door::Workflow => ("workflow", ""),
    }
}

fn agent(kind: Kind) -> &'static str {
    match kind {
        Kind::Builtin => "built-in",
        Kind::Exec => "program of the server",
        Kind::Joined => "program of a joined worker",
        Kind::Run => "run service",
        Kind::Task => "task service",
        Kind::Bridge => "bridge, in a directory",
        Kind::Pushed => "message, pushed",
        Kind::Pulled => "message, pulled",
        Kind::Program => "workflow, a program",
        Kind::Service => "workflow, a service",
        Kind::Function(Way::Run) => "function, by run",
        Kind::Function(Way::Task) => "function, by task",
        Kind::Function(Way::Pushed) => "function, by message, pushed",
        Kind::Function(Way::Pulled) => "function, by message, pulled",
        Kind::Function(Way::Workflow) => "function, by workflow",
    }
}
