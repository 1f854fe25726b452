"""What the machine is, and what it did meanwhile: without it no other figure means anything.

The names of the machine, of its users and of directories are left out: the result is published.
"""

import os
import platform
import resource
import statistics
import time

SYNCS = 300
SYNC_BYTES = 8192


def described(directory):
    model = first("/proc/cpuinfo", "model name", "unknown").split(":")[-1].strip()
    memory = int(first("/proc/meminfo", "MemTotal", "0 0").split()[1]) / 2**20
    return {
        "cores": os.cpu_count(),
        "processor": model,
        "memory_gib": round(memory),
        "kernel": platform.release().split("-")[0],
        "disk": disk(directory),
    }


def first(path, start, otherwise):
    with open(path) as file:
        return next((line for line in file if line.startswith(start)), otherwise)


def disk(directory):
    """The kind of file system and of device: `ext4 on a virtual disk`."""
    name = device(directory)
    kinds = (("nvme", "an NVMe disk"), ("vd", "a virtual disk"), ("xvd", "a virtual disk"), ("sd", "a SCSI or SATA disk"))
    kind = next((kind for start, kind in kinds if name.startswith(start)), "a device of another kind")
    return f"{filesystem(directory)} on {kind}"


def filesystem(directory):
    """The type of the mount that holds the directory: the one with the longest path."""
    with open("/proc/self/mounts") as file:
        mounts = [line.split()[1:3] for line in file]
    path = str(directory.resolve())
    holding = [(len(at), kind) for at, kind in mounts if path == at or path.startswith(at.rstrip("/") + "/")]
    return max(holding)[1] if holding else "unknown"


def device(directory):
    """The name of the block device under a directory, empty where there is none."""
    number = os.stat(directory).st_dev
    wanted = [str(os.major(number)), str(os.minor(number))]
    with open("/proc/diskstats") as file:
        return next((line.split()[2] for line in file if line.split()[:2] == wanted), "")


def flushes(directory):
    """How often the device was told to make durable what it was given, since it was started; None where nobody counts."""
    name = device(directory)
    with open("/proc/diskstats") as file:
        fields = next((line.split() for line in file if line.split()[2] == name), [])
    return int(fields[18]) if len(fields) > 18 else None


def sync_median_us(directory):
    """The median of syncing a little: what no commit can be faster than."""
    path = directory / "sync"
    times = []
    with open(path, "wb", buffering=0) as file:
        file.write(bytes(SYNC_BYTES * SYNCS))
        os.fsync(file.fileno())
        for number in range(SYNCS):
            os.pwrite(file.fileno(), os.urandom(SYNC_BYTES), number * SYNC_BYTES)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1e6)
    path.unlink()
    return round(statistics.median(times))


class Watch:
    """What the processors and the disk did between two moments, and how much of it was not for the group's sake."""

    def __init__(self, group, directory):
        self.group, self.directory = group, directory
        self.load = os.getloadavg()[0]
        self.ticks, self.own, self.flushed = ticks(), self.own_seconds(), flushes(directory)

    def own_seconds(self):
        """Of the system, of us, and of the load generator, which has ended when this is asked again."""
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return self.group.cpu_seconds() + sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def seen(self):
        now = ticks()
        all_ticks = max(1, sum(now) - sum(self.ticks))
        spent = [after - before for before, after in zip(self.ticks, now)]
        # What interrupts took is mostly the network between client and server, so it counts for nobody.
        busy = sum(spent[:3])
        own = (self.own_seconds() - self.own) * os.sysconf("SC_CLK_TCK")
        after = flushes(self.directory)
        return {
            "load_before": round(self.load, 2),
            "stolen_percent": round(100 * spent[7] / all_ticks, 2),
            "others_percent": round(max(0.0, 100 * (busy - own) / all_ticks), 2),
            "flushes": None if after is None or self.flushed is None else after - self.flushed,
        }


def ticks():
    """user, nice, system, idle, iowait, irq, softirq, steal."""
    with open("/proc/stat") as file:
        return [int(tick) for tick in file.readline().split()[1:9]]
