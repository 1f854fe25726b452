"""What a stage of a workflow costs: a run of many stages whose program does nothing, beside starting that program.

Standard library only. The command, the program and its supervisors are real processes of a release build. Prints a page of Markdown.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

QUICK = "--quick" in sys.argv
STAGES = 100 if QUICK else 1000
ROUNDS = 1 if QUICK else 5
BINARY = str(pathlib.Path(sys.argv[1]).resolve())
ENVELOPE = '{"success":true,"summary":"nothing","artifacts":[],"recommendation":"proceed"}'
SYNCS = 3
OWN_MILLIS = 1.0


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


def program(directory):
    path = directory / "nothing"
    path.write_text(f"#!/bin/sh\nread line\necho '{ENVELOPE}'\n")
    path.chmod(0o755)
    return path


def alone_millis(path, count):
    """Starting the program by itself, and reading what it prints."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        subprocess.run([path], input=b"{}\n", stdout=subprocess.PIPE, check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def run_millis(directory, stages):
    """A whole run of so many stages."""
    file = directory / f"{stages}.toml"
    stage = "".join(f'[[stage]]\nid = "s{at}"\nagent = "nothing"\naction = "go"\n' for at in range(stages))
    file.write_text(f'name = "many"\n{stage}[[agent]]\nname = "nothing"\nexec = ["./nothing"]\n')
    repository, data = directory / "repository", directory / "data"
    repository.mkdir(exist_ok=True)
    shutil.rmtree(data, ignore_errors=True)
    began = time.perf_counter()
    command = [BINARY, "workflow", "run", str(file), "--root", str(repository), "--data", str(data), "--json"]
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000


def main():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="workflow-", dir=os.getcwd()))
    rows = []
    try:
        path = program(directory)
        for _ in range(ROUNDS):
            disk, alone = fsync_millis(directory), alone_millis(path, 200)
            # What opening and closing the store takes is no stage's: a run of one stage has it too.
            stage = (run_millis(directory, STAGES) - run_millis(directory, 1)) / (STAGES - 1)
            rows.append((disk, alone, stage))
    finally:
        shutil.rmtree(directory)
    disk, alone, stage = (statistics.median(column) for column in zip(*rows))
    over = stage - alone - SYNCS * disk
    met = f"{over:.2f}" if over <= OWN_MILLIS else f"**{over:.2f}**"
    print(f"{STAGES} stages whose program does nothing (a shell script), one after the other, {ROUNDS} rounds, medians, in ms.\n")
    print("| a stage | of it: the program by itself | one fsync of 4 KB | the rest over three of these | target |\n|---|---|---|---|---|")
    print(f"| {stage:.2f} | {alone:.2f} | {disk:.2f} | {met} | at most {OWN_MILLIS:.0f} |\n")
    print("Every round (stage, program, fsync):\n")
    for disk, alone, stage in rows:
        print(f"- {stage:.2f}, {alone:.2f}, {disk:.2f}")


main()
