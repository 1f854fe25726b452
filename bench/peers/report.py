"""Everything that is published about a run, made from its raw numbers and never typed by hand.

usage: report.py [--check]

Writes bench/RESULTS.md (between its marks), README.md (the same) and bench/peers.svg from the newest whole run in bench/raw. README.md
has five figures of that run, RESULTS.md has all. If some systems were run again later, by themselves, RESULTS.md has that run too, apart:
figures of two runs are not compared. With --check it writes nothing, and says which of them is not what the numbers give; exit code 1.
"""

import json
import pathlib
import sys

import figures
import plot
import systems
from install import ROOT, refuse, say

RAW = ROOT / "bench" / "raw"
RESULTS = ("bench/RESULTS.md", "<!-- peers: measured -->", "<!-- peers: end -->")
README = ("README.md", "<!-- peers: begin -->", "<!-- peers: end -->")
PLOT = "bench/peers.svg"
# What README.md compares: ours, where the work leaves the server as it does with most of the peers, and the peers that do jobs.
OURS, THEIRS = "crosspoint-agent", ("restate", "dbos", "celery")
UNSETTLED = "\\*"
# How the files begin of runs of all systems, and of some.
WHOLE, PART = "peers", "part"
# What stands before the latter.
AGAIN = "Later, with the program as it was then, some of them by themselves:"


def keep(record, extent):
    """Writes the raw numbers, one file a run; the last one by name is the newest."""
    RAW.mkdir(parents=True, exist_ok=True)
    path = RAW / f"{extent}-{moment(record)}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def moment(record):
    return f"{record['measured_on']}-{record['measured_at']}"


def newest(extent):
    """The newest run and its name; None for both if there is none."""
    found = sorted(RAW.glob(f"{extent}-*.json"))
    return (json.loads(found[-1].read_text()), found[-1].name) if found else (None, None)


def completed(record, later):
    """With a row for every system that there is, also if it is younger than the run."""
    why = lambda name: "measured later, below" if name in later else "not measured yet"
    unknown = lambda name: {"title": systems.ALL[name].TITLE, "missing": why(name)}
    return {**record, "systems": {name: record["systems"].get(name) or unknown(name) for name in systems.ALL}}


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
    """What README.md has: five figures of ours, and of each peer with how many times ours it is, or ours is it."""
    heads = [f"{count} client{'s' * (count > 1)}" for count in figures.CONNECTIONS]
    lines = [row("jobs a second", *heads, "memory", "first job after"), rule(6)]
    ours, shown, missed = record["systems"][OURS], [OURS], set()
    if figures.absent(ours):
        lines.append(row(ours["title"], *missing(ours, 5)))
    else:
        lines.append(row(f"**{ours['title']}**", *each(ours, lambda cell: number(cell.rate)), *at_rest(ours)))
    for name in THEIRS:
        entry = record["systems"][name]
        if figures.absent(entry):
            lines.append(row(entry["title"], *missing(entry, 5)))
            continue
        shown.append(name)
        cells = [*each(entry, lambda cell: number(cell.rate)), *at_rest(entry)]
        times = figures.ratios(record).get((OURS, name))
        if times:
            missed |= {it.target for it in times if it.short()}
            cells = [f"{cell} ({time})" for cell, time in zip(cells, [*map(marked, times), *at_rest_times(entry, ours)])]
        lines.append(row(entry["title"], *cells))
    told = []
    if missed:
        told.append(f"Bold: short of the {' and '.join(f'{target}x' for target in sorted(missed))} that we set out for.")
    if any(figures.unsettled(record["systems"][name]) for name in shown):
        told.append(f"{UNSETTLED} not settled: its rounds lie too far apart, or were disturbed.")
    return "\n".join(lines) + ("\n\n" + " ".join(told) if told else "")


def marked(it):
    """How many times the peer's jobs a second ours are; bold where that is less than we set out for."""
    value = f"{it.value:.1f}x" if it.value < 20 else f"{it.value:.0f}x"
    return f"**{value}**" if it.short() else value


def at_rest(entry):
    return f"{figures.memory_mib(entry):.0f} MiB", f"{figures.start_ms(entry) / 1000:.2f} s"


def at_rest_times(entry, ours):
    """How many times our memory, and our time to the first job, the peer takes."""
    shares = [figures.memory_mib(entry) / figures.memory_mib(ours), figures.start_ms(entry) / figures.start_ms(ours)]
    return [f"{share:.1f}x" if share < 20 else f"{share:.0f}x" for share in shares]


def between(place, text):
    """The file's text with what stands between its marks replaced."""
    path, begin, end = place
    whole = (ROOT / path).read_text()
    before, found, rest = whole.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        refuse(f"{path} has no {begin} or no {end}", "put both where the figures belong")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def kept(name):
    return f"Raw numbers, every try of every round: [raw/{name}](raw/{name})."


def published():
    """Every file that a run changes, as it must be, and the names of the runs."""
    record, name = newest(WHOLE)
    if not record:
        refuse("bench/raw has no numbers", "scripts/bench --peers")
    part, part_name = newest(PART)
    # What a whole run has measured since is not shown twice.
    if part and moment(part) < moment(record):
        part = None
    record = completed(record, part["systems"] if part else {})
    image = f"![Jobs a second of each system at 1, 32 and 128 clients]({pathlib.PurePath(PLOT).name})"
    results, names = [image, table(record), kept(name)], [name]
    if part:
        results += [AGAIN, table(part), kept(part_name)]
        names.append(part_name)
    files = {RESULTS[0]: between(RESULTS, "\n\n".join(results)), README[0]: between(README, short_table(record))}
    return {**files, PLOT: plot.drawn(record)}, names


def write():
    for path, text in published()[0].items():
        (ROOT / path).write_text(text)


def main():
    if sys.argv[1:] == []:
        return write()
    if sys.argv[1:] != ["--check"]:
        refuse(f"unknown arguments: {' '.join(sys.argv[1:])}", "report.py [--check]")
    files, names = published()
    stale = [file for file, text in files.items() if (ROOT / file).read_text() != text]
    if stale:
        say(f"error: {', '.join(stale)}: not what bench/raw/{' and '.join(names)} gives\nhint: python3 bench/peers/report.py")
        sys.exit(1)


if __name__ == "__main__":
    main()
