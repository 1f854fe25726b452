"""Everything that is published about a run, made from its raw numbers and never typed by hand.

usage: report.py [--check]

Writes bench/RESULTS.md (between its marks), README.md (the same) and bench/peers.svg from the newest file of bench/raw. With
--check it writes nothing, and says which of them is not what the numbers give; exit code 1.
"""

import json
import sys

import figures
import plot
from install import ROOT, refuse, say

RAW = ROOT / "bench" / "raw"
RESULTS = ("bench/RESULTS.md", "<!-- peers: measured -->", "<!-- peers: end -->")
README = ("README.md", "<!-- peers: begin -->", "<!-- peers: end -->")
PLOT = "bench/peers.svg"
UNSETTLED = "\\*"


def keep(record):
    """Writes the raw numbers, one file a run; the last one by name is the newest."""
    RAW.mkdir(parents=True, exist_ok=True)
    path = RAW / f"peers-{record['measured_on']}-{record['measured_at']}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def newest():
    found = sorted(RAW.glob("peers-*.json"))
    return found[-1] if found else refuse("bench/raw has no numbers", "scripts/bench --peers")


def table(record):
    """What RESULTS.md has: machine, figures, ratios, versions and settings."""
    parts = [machine(record), figures_table(record), ratios_table(record), notes(record), settings(record)]
    return "\n\n".join(part for part in parts if part)


def machine(record):
    it = record["machine"]
    syncs = " and ".join(f"{us / 1000:.2f}" for us in record["sync_us"])
    return (
        f"Measured on {record['measured_on']}: {it['cores']} cores ({it['processor']}), {it['memory_gib']} GiB, Linux {it['kernel']}, "
        f"{it['disk']}; an fdatasync took {syncs} ms (median, before and after). Client: {record['client']}, on the same "
        f"machine; at least {record['seconds']:g} s a cell, and 20 times as long as a request, after {record['warm_seconds']:g} s of warming."
    )


def row(*cells):
    return f"| {' | '.join(cells)} |"


def rule(columns):
    return "|" + "---|" * columns


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def milliseconds(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def each(entry, show):
    """The three cells of a system in one row; those that are not settled are marked."""
    cells = [figures.cell(entry, count) for count in figures.CONNECTIONS]
    return [show(cell) + ("" if cell.settled else UNSETTLED) for cell in cells]


def slashed(entry, show):
    cells = [figures.cell(entry, count) for count in figures.CONNECTIONS]
    return " / ".join(show(cell) for cell in cells)


def missing(entry, columns):
    return [entry["missing"], *[""] * (columns - 1)]


def flushes(cell):
    return "?" if cell.flushes_a_job is None else f"{cell.flushes_a_job:.2g}"


def figures_table(record):
    heads = [f"{count} connection{'s' * (count > 1)}" for count in figures.CONNECTIONS]
    lines = [row("jobs a second", *heads, "p50 ms", "p99 ms", "disk flushes a job", "memory", "first job after"), rule(9)]
    for entry in record["systems"].values():
        if figures.absent(entry):
            lines.append(row(entry["title"], *missing(entry, 8)))
            continue
        lines.append(
            row(
                entry["title"],
                *each(entry, lambda cell: number(cell.rate)),
                slashed(entry, lambda cell: milliseconds(cell.p50_ms)),
                slashed(entry, lambda cell: milliseconds(cell.p99_ms)),
                slashed(entry, flushes),
                f"{figures.memory_mib(entry):.0f} MiB",
                f"{figures.start_ms(entry) / 1000:.2f} s",
            )
        )
    return "\n".join(lines)


def ratio(it):
    mark = "" if it.settled else UNSETTLED
    if it.short():
        return f"**{it.value:.1f}x**{mark}, short of {it.target}x"
    return f"{it.value:.1f}x{mark}" + (f" (target {it.target}x)" if it.target else "")


def ratios_table(record):
    found = figures.ratios(record)
    if not found:
        return ""
    heads = [f"at {count}" for count in figures.CONNECTIONS]
    lines = [row("jobs a second, against", *heads), rule(4)]
    for (ours, theirs), all_three in found.items():
        titles = [record["systems"][name]["title"] for name in (ours, theirs)]
        lines.append(row(" / ".join(titles), *[ratio(it) for it in all_three]))
    return "\n".join(lines)


def notes(record):
    """What the marks mean, where there are any."""
    entries = record["systems"].values()
    if not any(figures.unsettled(entry) for entry in entries):
        return ""
    limits = record["limits"]
    later = [f"{entry['title']} after {len(entry['rounds'])} rounds: {entry['missing']}." for entry in entries if "missing" in entry and not figures.absent(entry)]
    return " ".join([*later, explained(limits)])


def explained(limits):
    return (
        f"{UNSETTLED} not settled: fewer than {figures.ROUNDS_MIN} rounds in which at most {limits['stolen_percent']:g}% of the "
        f"processors' time went to other machines and {limits['others_percent']:g}% to other programs, or rounds that lie more than "
        f"{figures.SPREAD_MAX:.0%} apart."
    )


def settings(record):
    lines = []
    for entry in record["systems"].values():
        if "versions" in entry:
            told = entry["rounds"][0]["settings"] if entry["rounds"] else {}
            shown = ", ".join(f"`{name}` = {value}" for name, value in told.items())
            lines.append(f"- {entry['title']}: {', '.join(entry['versions'])}" + (f"; in force: {shown}" if shown else ""))
    return "\n".join(lines)


def short_table(record):
    """What README.md has."""
    heads = [f"{count} client{'s' * (count > 1)}" for count in figures.CONNECTIONS]
    lines = [row("jobs a second", *heads, "memory", "first job after"), rule(6)]
    for entry in record["systems"].values():
        if figures.absent(entry):
            lines.append(row(entry["title"], *missing(entry, 5)))
            continue
        rates = each(entry, lambda cell: number(cell.rate))
        lines.append(row(entry["title"], *rates, f"{figures.memory_mib(entry):.0f} MiB", f"{figures.start_ms(entry) / 1000:.2f} s"))
    image = f"![Jobs a second of each system at 1, 32 and 128 clients]({PLOT})"
    parts = [image, "\n".join(lines), ratios_table(record), notes(record)]
    return "\n\n".join(part for part in parts if part)


def between(place, text):
    """The file's text with what stands between its marks replaced."""
    path, begin, end = place
    whole = (ROOT / path).read_text()
    before, found, rest = whole.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        refuse(f"{path} has no {begin} or no {end}", "put both where the figures belong")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def published(record, name):
    """Every file that a run changes, as it must be."""
    kept = f"Raw numbers, every try of every round: [raw/{name}](raw/{name})."
    return {
        RESULTS[0]: between(RESULTS, f"{table(record)}\n\n{kept}"),
        README[0]: between(README, short_table(record)),
        PLOT: plot.drawn(record),
    }


def write(record, name):
    for path, text in published(record, name).items():
        (ROOT / path).write_text(text)


def main():
    path = newest()
    record = json.loads(path.read_text())
    if sys.argv[1:] == []:
        return write(record, path.name)
    if sys.argv[1:] != ["--check"]:
        refuse(f"unknown arguments: {' '.join(sys.argv[1:])}", "report.py [--check]")
    stale = [file for file, text in published(record, path.name).items() if (ROOT / file).read_text() != text]
    if stale:
        say(f"error: {', '.join(stale)}: not what bench/raw/{path.name} gives\nhint: python3 bench/peers/report.py")
        sys.exit(1)


if __name__ == "__main__":
    main()
