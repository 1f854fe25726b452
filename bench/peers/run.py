"""Measures Crosspoint beside what people would use instead, on this machine, in one go.

Installs what is missing (wrk and Redis with apt, the rest under target/peers), then starts one system after the other, loads it with
1, 32 and 128 connections, and stops it; three times over. A system that cannot be installed or fails is a row that says why.

Progress goes to stderr, the table to stdout. A whole run takes about 20 minutes once everything is built, and is written to bench/raw,
bench/RESULTS.md, bench/peers.svg and README.md, all of which report.py makes from the raw numbers.
"""

import argparse
import dataclasses
import datetime
import signal
import subprocess
import sys

import figures
import install
import machine
import measure
import payload
import report
import systems
from install import say

# Beyond the rounds, for cells that stayed disturbed or whose rounds lie too far apart.
EXTRA_ROUNDS_MAX = 2
# Of all cells together, so that a busy machine cannot make a run endless: about six minutes.
REPEATS_MAX = 24


@dataclasses.dataclass
class Extent:
    """How much is measured."""

    rounds: int
    seconds: int
    warm_seconds: int
    repeats_left: int

    def may_repeat(self):
        """Takes one of the repeats, if there is one."""
        self.repeats_left -= 1
        return self.repeats_left >= 0


QUICK = Extent(rounds=1, seconds=2, warm_seconds=1, repeats_left=0)
WHOLE = Extent(rounds=3, seconds=10, warm_seconds=3, repeats_left=REPEATS_MAX)


def main():
    arguments = parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    chosen = choose(arguments.only)
    extent = QUICK if arguments.quick else WHOLE
    extent.seconds = arguments.seconds or extent.seconds
    record = measured(chosen, extent)
    print(report.table(record))
    if arguments.quick or arguments.only and not arguments.keep:
        return
    path = report.keep(record, report.PART if arguments.only else report.WHOLE)
    report.write()
    say(f"written to {path.relative_to(install.ROOT)}, bench/RESULTS.md, bench/peers.svg and README.md")


def parse():
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="scripts/bench --peers", description=__doc__, formatter_class=shape)
    parser.add_argument("--peers", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="one short round, to see that everything works; written nowhere")
    names = ", ".join(systems.ALL)
    parser.add_argument("--only", metavar="NAME,...", help=f"only these systems, written nowhere: {names}")
    parser.add_argument("--keep", action="store_true", help="with --only: written all the same, beside the last whole run")
    parser.add_argument("--seconds", type=int, metavar="N", help="how long a cell is measured; 10 unless given")
    return parser.parse_args()


def choose(only):
    """The names of the systems, in their order."""
    names = only.split(",") if only else list(systems.ALL)
    unknown = [name for name in names if name not in systems.ALL]
    if unknown:
        install.refuse(f"no system is called {unknown[0]}", ", ".join(systems.ALL))
    return [name for name in systems.ALL if name in names]


def measured(chosen, extent):
    """The raw numbers of a run."""
    install.HERE.mkdir(parents=True, exist_ok=True)
    say("installing and building; nothing is measured yet")
    need_wrk()
    record = {**begin(extent), "systems": {name: {"title": systems.ALL[name].TITLE} for name in chosen}}
    prepared = {name: prepare(name, record["systems"][name]) for name in chosen}
    record["sync_us"] = [machine.sync_median_us(install.HERE)]
    for number in range(extent.rounds):
        say(f"round {number + 1} of {extent.rounds}")
        for name in chosen:
            add_round(name, prepared[name], extent, record["systems"][name], figures.CONNECTIONS)
    for _ in range(EXTRA_ROUNDS_MAX if extent.rounds > 1 else 0):
        for name in chosen:
            extra_round(name, prepared[name], extent, record["systems"][name])
    record["sync_us"].append(machine.sync_median_us(install.HERE))
    return record


def need_wrk():
    try:
        install.debian("wrk")
    except install.Missing as missing:
        install.refuse(missing, "apt-get install wrk")


def prepare(name, entry):
    """What a system needs; why it is not there goes into its entry."""
    try:
        tools = systems.ALL[name].prepare()
    except install.Missing as missing:
        entry["missing"] = f"not run: {missing}"
        return say(f"{name}: {entry['missing']}")
    entry.update(versions=tools["versions"], rounds=[])
    say(f"{name}: {', '.join(tools['versions'])}")
    return tools


def begin(extent):
    now = datetime.datetime.now(datetime.timezone.utc)
    wrk = subprocess.run(["wrk", "--version"], stdout=subprocess.PIPE, check=False).stdout.decode().split()[1]
    return {
        "measured_on": now.date().isoformat(),
        "measured_at": now.strftime("%H%M"),
        "machine": machine.described(install.HERE),
        "client": f"wrk {wrk.removeprefix('debian/')}, one thread",
        "payload_bytes": payload.BYTES,
        "seconds": extent.seconds,
        "warm_seconds": extent.warm_seconds,
        "limits": {"stolen_percent": measure.STOLEN_PERCENT_MAX, "others_percent": measure.OTHERS_PERCENT_MAX},
    }


def add_round(name, tools, extent, entry, connections):
    """Measures a system once more. One that fails stays in the table, with the reason, and is not asked again."""
    if "missing" in entry:
        return
    try:
        entry["rounds"].append(measure.once(name, tools, extent, connections))
    except (measure.Failed, RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        say(f"{name}: {type(error).__name__}: {error}")
        # What is published names no directory of this machine.
        entry["missing"] = f"failed: {error}".replace(str(install.ROOT), ".").replace("|", "/")


def extra_round(name, tools, extent, entry):
    """Cells that are not settled are measured again, while there are repeats left."""
    if "missing" in entry:
        return
    unsettled = [count for count in figures.unsettled(entry) if extent.may_repeat()]
    if unsettled:
        say(f"{name}: once more for {', '.join(map(str, unsettled))} connections")
        add_round(name, tools, extent, entry, unsettled)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
