"""How much the bridge adds: the time from a request in place to its response, from a program's exit to its next start, and what watching costs.

Standard library only. The server, the watcher and the programs are real processes of a release build, on this machine alone; the agent is the built-in
echo, whose own time is next to nothing. Prints a page of Markdown.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

QUICK = "--quick" in sys.argv
ROUNDS = 60 if QUICK else 400
RESUMPTIONS = 20 if QUICK else 100
DIRECTORIES = 1000
REST_SECONDS = 5 if QUICK else 60
BINARY = str(pathlib.Path(sys.argv[1]).resolve())


def fsync_millis(directory, count=200):
    """One small write and fsync, again and again: what a disk takes for it, median."""
    times = []
    with open(directory / "fsync", "wb") as file:
        for _ in range(count):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def percentiles(seconds):
    ordered = sorted(seconds)
    at = lambda part: ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1000
    return at(0.5), at(0.99)


def request(prompt="Größe?"):
    return {
        "request_id": str(uuid.uuid4()),
        "version": "1.0",
        "agent_name": "echo",
        "prompt": prompt,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "context": {"bytes": "x" * 800},
    }


def put(directory, document):
    """As a careful requester does it: whole, synced, renamed."""
    name = directory / ".agent-request.json.new"
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(descriptor, json.dumps(document).encode())
    os.fsync(descriptor)
    os.close(descriptor)
    os.rename(name, directory / ".agent-request.json")


class Server:
    def __init__(self, directory):
        self.directory = directory
        self.process = subprocess.Popen(
            [BINARY, "serve", "--listen", "127.0.0.1:0", "--log", "off"], cwd=directory, stderr=subprocess.DEVNULL
        )
        address = directory / ".crosspoint" / "server.json"
        until = time.monotonic() + 30
        while not address.exists():
            if time.monotonic() > until:
                raise SystemExit("the server does not come up")
            time.sleep(0.01)
        self.url = json.loads(address.read_text())["url"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def watcher(arguments, cwd):
    process = subprocess.Popen([BINARY, "bridge", "watch", *arguments], cwd=cwd, stderr=subprocess.PIPE)
    # It says so when it watches.
    process.stderr.readline()
    return process


def round_trips(directory):
    response = directory / ".agent-response.json"
    times = []
    for _ in range(ROUNDS):
        document = request()
        put(directory, document)
        began = time.perf_counter()
        while not response.exists():
            pass
        times.append(time.perf_counter() - began)
        answer = json.loads(response.read_text())
        assert answer["request_id"] == document["request_id"], "an answer to another request"
        assert json.loads(answer["response"])["prompt"] == document["prompt"]
        response.unlink()
        while (directory / ".agent-request.json").exists():
            pass
    return percentiles(times)


PROGRAM = r"""
began=$EPOCHREALTIME
[ -f .agent-response.json ] && rm .agent-response.json
n=$(( $(cat count 2>/dev/null || echo 0) + 1 )); echo $n > count
if [ $n -gt LAST ]; then printf '%s %s\n' $began 0 >> times; exit 0; fi
printf '{"request_id":"00000000-0000-4000-8000-%012d","version":"1.0","agent_name":"echo","prompt":"RUN %d"}' $n $n > .new
sync .new; mv .new .agent-request.json
printf '%s %s\n' $began $EPOCHREALTIME >> times
exit 42
"""


def resumptions(directory, extra):
    """From a program's exit to its next start, and how long the same program takes to come up by itself."""
    work = directory / f"run-{uuid.uuid4().hex[:8]}"
    work.mkdir()
    marked = PROGRAM.replace("LAST", str(RESUMPTIONS)).replace("RUN", uuid.uuid4().hex)
    marked = marked.replace("00000000-0000-4000-8000", str(uuid.uuid4())[:23])
    (work / "program.sh").write_text(marked)
    command = [BINARY, "bridge", "run", *extra, "--max-iterations", str(RESUMPTIONS + 1), "--", "bash", "program.sh"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in (work / "times").read_text().splitlines()]
    assert len(lines) == RESUMPTIONS + 1, lines
    gaps = [float(after[0]) - float(before[1]) for before, after in zip(lines, lines[1:])]
    alone = []
    for _ in range(30):
        began = time.time()
        shown = subprocess.run(["bash", "-c", "echo $EPOCHREALTIME"], capture_output=True, text=True).stdout
        alone.append(float(shown) - began)
    return percentiles(gaps), percentiles(alone)


def status(pid, name):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1))


def ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def at_rest(directory, extra):
    many = directory / f"many-{uuid.uuid4().hex[:8]}"
    names = [many / f"d{n:04}" for n in range(DIRECTORIES)]
    for name in names:
        name.mkdir(parents=True)
    process = watcher([*extra, *map(str, names)], many)
    time.sleep(2)
    before = ticks(process.pid)
    time.sleep(REST_SECONDS)
    used = ticks(process.pid) - before
    memory = status(process.pid, "VmRSS") / 1024
    process.send_signal(signal.SIGTERM)
    process.wait()
    return memory, used * 1000 / os.sysconf("SC_CLK_TCK")


def main():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="bridge-", dir=os.getcwd()))
    try:
        disk = fsync_millis(directory)
        server = Server(directory)
        inbox = directory / "inbox"
        inbox.mkdir()
        process = watcher(["--server", server.url, str(inbox)], directory)
        p50, p99 = round_trips(inbox)
        process.send_signal(signal.SIGTERM)
        process.wait()
        through, alone = resumptions(directory, ["--server", server.url])
        rss, cpu = at_rest(directory, ["--server", server.url])
        server.stop()
        embedded = directory / "embedded"
        embedded.mkdir()
        own, _ = resumptions(embedded, [])
        own_rss, own_cpu = at_rest(embedded, [])
    finally:
        shutil.rmtree(directory)
    print(f"One fsync of 4 KB on this disk: {disk:.2f} ms. The agent is the built-in echo; its own time is next to nothing.\n")
    print("| what | p50 ms | p99 ms | target |\n|---|---|---|---|")
    print(f"| from a request in place to its response in place, `bridge watch`, {ROUNDS} rounds | {p50:.1f} | {p99:.1f} | at most 20 more than the agent |")
    print(f"| from a program's exit to its next start, `bridge run` with a server, {RESUMPTIONS} resumptions | {through[0]:.1f} | {through[1]:.1f} | at most 20 more than the agent |")
    print(f"| the same without a server: the store is opened and closed each time | {own[0]:.1f} | {own[1]:.1f} | at most 20 more than the agent |")
    print(f"| of these two, starting the program (bash) by itself | {alone[0]:.1f} | {alone[1]:.1f} | |\n")
    print("| 1,000 directories watched, nothing to do | with a server | without | target |\n|---|---|---|---|")
    print(f"| memory, MB (VmRSS) | {rss:.1f} | {own_rss:.1f} | under 30 |")
    print(f"| processor time in {REST_SECONDS} s, ms | {cpu:.0f} | {own_cpu:.0f} | none that can be measured |")


main()
