"""From raw numbers to figures: medians, spreads and ratios. Pure: the same numbers give the same figures."""

import dataclasses
import statistics

CONNECTIONS = (1, 32, 128)
ROUNDS_MIN = 3
# The widest that the rounds of a settled cell may lie apart, as a share of their median.
SPREAD_MAX = 0.25

# What we set out to reach: so many times the peer's jobs a second, at 1, 32 and 128 connections.
TARGETS = {
    ("crosspoint", "restate"): (6, 10, 10),
    ("crosspoint-agent", "restate"): (5, 7, 7),
    ("crosspoint-run", "restate"): (5, 7, 7),
    ("crosspoint", "dbos"): (20, 20, 20),
    ("crosspoint-agent", "dbos"): (20, 20, 20),
    ("crosspoint", "celery"): (20, 20, 20),
    ("crosspoint-agent", "celery"): (20, 20, 20),
    ("crosspoint", "nats"): (None, None, None),
    ("crosspoint-agent", "nats"): (None, None, None),
}


@dataclasses.dataclass
class Cell:
    """One system at one number of connections: medians of what counts."""

    rate: float
    p50_ms: float
    p99_ms: float
    flushes_a_job: float | None
    settled: bool


@dataclasses.dataclass
class Ratio:
    value: float
    target: float | None
    settled: bool

    def short(self):
        """Judged as shown: to one decimal."""
        return self.target is not None and round(self.value, 1) < self.target


def counting(entry, connections):
    """The last try of every round that has this cell: undisturbed ones if there are enough of them."""
    rounds = [each["cells"][str(connections)] for each in entry["rounds"] if str(connections) in each["cells"]]
    last = [tries[-1] for tries in rounds]
    calm = [seen for seen in last if not seen["disturbed"]]
    return calm if len(calm) >= ROUNDS_MIN else last


def settled(seen):
    rates = [each["rate"] for each in seen]
    near = max(rates) - min(rates) <= SPREAD_MAX * statistics.median(rates)
    return near and len(seen) >= ROUNDS_MIN and not any(each["disturbed"] for each in seen)


def absent(entry):
    """Whether there are no figures of a system. One that failed later keeps those of its whole rounds, which are too few to be settled."""
    return "missing" in entry and not entry.get("rounds")


def cell(entry, connections):
    """None for a system that was not run."""
    if absent(entry):
        return None
    seen = counting(entry, connections)
    median = lambda value: statistics.median(value(each) for each in seen)
    counted = all(each["flushes"] is not None for each in seen)
    return Cell(
        rate=median(lambda each: each["rate"]),
        p50_ms=median(lambda each: each["p50_us"]) / 1000,
        p99_ms=median(lambda each: each["p99_us"]) / 1000,
        flushes_a_job=median(lambda each: each["flushes"] / max(1, each["requests"])) if counted else None,
        settled=settled(seen),
    )


def unsettled(entry):
    """The numbers of connections of which there is not enough to be sure."""
    if absent(entry):
        return []
    return [count for count in CONNECTIONS if not settled(counting(entry, count))]


def memory_mib(entry):
    """After the cell with the most connections."""
    last = str(CONNECTIONS[-1])
    return statistics.median(each["memory_bytes"] for each in entry["rounds"] if last in each["cells"]) / 2**20


def start_ms(entry):
    return statistics.median(each["start_ms"] for each in entry["rounds"])


def ratios(record):
    """For each pair that was run, how many times the peer's rate ours is."""
    found = {}
    for (ours, theirs), targets in TARGETS.items():
        entries = [record["systems"].get(name, {"missing": ""}) for name in (ours, theirs)]
        if any(absent(entry) for entry in entries):
            continue
        cells = [[cell(entry, count) for entry in entries] for count in CONNECTIONS]
        found[ours, theirs] = [
            Ratio(our.rate / their.rate, target, our.settled and their.settled)
            for (our, their), target in zip(cells, targets)
        ]
    return found
