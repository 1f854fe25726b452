"""Processes that we start, and that do not outlive us.

Each is the leader of a session of its own, so that what it forks (the workers of Celery) is ended with it, by the id of the
group. Whoever starts one does so in a `Group`, whose `with` ends all of them, also on an error or Ctrl-C.
"""

import os
import signal
import socket
import subprocess
import time

# How long a process may take to end by itself before it is killed.
GRACE_SECONDS = 5
LISTEN_SECONDS_MAX = 30
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Group:
    """What one system consists of while it runs."""

    def __init__(self, directory):
        self.directory = directory
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def start(self, name, command, **environment):
        """Starts a program; what it prints goes to a file of its name."""
        with open(self.directory / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.directory,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append((name, process))

    def check(self):
        """Says which program has ended although it should run, and what it said last."""
        for name, process in self.started:
            if process.poll() is not None:
                lines = (self.directory / f"{name}.log").read_text(errors="replace").strip().splitlines()
                said = lines[-1][:200] if lines else "nothing"
                raise RuntimeError(f"{name} ended with {process.returncode}; it said last: {said}")

    def await_port(self, port):
        """Until something listens, for a program that does not wait by itself."""
        deadline = time.monotonic() + LISTEN_SECONDS_MAX
        while time.monotonic() < deadline:
            self.check()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.005)
        raise RuntimeError(f"nobody listens after {LISTEN_SECONDS_MAX} s")

    def end(self):
        """Ends all, the last one first, since the later ones are clients of the earlier."""
        # A second Ctrl-C must not leave the rest running.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for _, process in reversed(self.started):
            send(process.pid, signal.SIGTERM)
            deadline = time.monotonic() + GRACE_SECONDS
            while alive(process) and time.monotonic() < deadline:
                time.sleep(0.02)
            # Also those that the leader has left behind.
            send(process.pid, signal.SIGKILL)
            process.wait()
        self.started = []
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def pids(self):
        """All processes of all groups."""
        leaders = {process.pid for _, process in self.started}
        return [pid for pid in every_pid() if session(pid) in leaders]

    def memory_bytes(self):
        """Their memory; what several share is counted once."""
        return sum(proportional_bytes(pid) for pid in self.pids())

    def cpu_seconds(self):
        return sum(cpu_seconds(pid) for pid in self.pids())


def send(group, number):
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def alive(process):
    return process.poll() is None


def every_pid():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def stat(pid):
    """The fields after the name, which may hold anything, spaces and brackets included."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def session(pid):
    fields = stat(pid)
    return int(fields[3]) if fields else None


def cpu_seconds(pid):
    """Of itself and of its children that have ended."""
    fields = stat(pid)
    return sum(int(field) for field in fields[11:15]) / TICKS_A_SECOND if fields else 0.0


def proportional_bytes(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def free_port():
    """A port that nobody listens on at present."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
