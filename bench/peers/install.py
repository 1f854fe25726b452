"""Gets what the peers need, by name, from the usual registries.

Everything goes under `target/peers`, except what Debian has. What cannot be had is no reason to stop: the peer that needs it
becomes a row that says so.
"""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import versions

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "target" / "peers"
SOURCES = ROOT / "bench" / "peers"
# A registry that does not answer must not hold up the others for ever.
INSTALL_SECONDS_MAX = 600
BUILD_SECONDS_MAX = 1800


class Missing(Exception):
    """Something cannot be had; the text says what, in the words of the table."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def refuse(error, hint):
    """Ends the program: it cannot do what it was asked."""
    say(f"error: {error}\nhint: {hint}")
    sys.exit(2)


def attempt(what, command, seconds_max=INSTALL_SECONDS_MAX):
    """Runs a command; what it prints goes to stderr, and that it failed becomes a reason."""
    say(f"  {what}: {' '.join(str(part) for part in command[:3])} ...")
    try:
        subprocess.run(command, check=True, cwd=ROOT, stdout=sys.stderr, timeout=seconds_max)
    except (OSError, subprocess.SubprocessError) as error:
        say(f"  {type(error).__name__}: {error}")
        raise Missing(f"{what} could not be installed") from error


def apt(package):
    """Installs a package of Debian, without starting what it would start."""
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "apt-get", "--yes", "--quiet"]
    install = [*root, *quiet, "install", "--no-install-recommends", package]
    try:
        attempt(package, install)
    except Missing:
        # The list of packages may be missing or too old.
        attempt(package, [*root, *quiet, "update"])
        attempt(package, install)


@functools.cache
def debian(name):
    """The path of a program of Debian's package of that name."""
    if not shutil.which(name):
        apt(versions.APT[name])
    return pathlib.Path(shutil.which(name) or f"/usr/bin/{name}")


@functools.cache
def environment():
    """The programs of a Python environment of our own. Debian has what makes one in a package of its own."""
    programs = HERE / "venv" / "bin"
    make = [sys.executable, "-m", "venv", "--clear", str(HERE / "venv")]
    if not (programs / "pip").exists():
        try:
            attempt("a Python environment", make)
        except Missing:
            apt(versions.APT["venv"])
            attempt("a Python environment", make)
    return programs


@functools.cache
def python(packages):
    """The programs of the environment, when it has these packages."""
    programs = environment()
    pip = [str(programs / "pip"), "--disable-pip-version-check", "install", "--quiet", "--only-binary", ":all:"]
    attempt(packages[0], [*pip, *packages])
    return programs


@functools.cache
def restate_server():
    """The program of the platform's package; no script of a package is run."""
    target = HERE / "npm"
    package = f"@restatedev/restate-server@{versions.RESTATE_SERVER}"
    target.mkdir(parents=True, exist_ok=True)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix", str(target)]
    attempt(package, ["npm", "install", *options, package])
    found = sorted(target.glob("node_modules/@restatedev/restate-server-*/bin/restate-server"))
    if not found:
        raise Missing(f"{package} has no program for this platform")
    return found[0]


@functools.cache
def peer_program(name):
    """A Rust program of a peer, from its own directory with its own lock file."""
    manifest = SOURCES / name / "Cargo.toml"
    command = ["cargo", "build", "--release", "--locked", "--manifest-path", str(manifest)]
    attempt(name, [*command, "--target-dir", str(HERE / "cargo")], BUILD_SECONDS_MAX)
    return HERE / "cargo" / "release" / name


@functools.cache
def crosspoint():
    return built("crosspoint", ["cargo", "build", "--release", "--locked", "--package", "crosspoint"])


@functools.cache
def echo_agent():
    """The load generator of `scripts/bench`, which can also be an agent that joins a server from outside."""
    return built("engine", ["cargo", "bench", "--no-run", "--locked", "--package", "crosspoint", "--bench", "engine"])


def built(name, command):
    """Builds, and asks cargo where it has put the program."""
    say(f"  {name}: {' '.join(command[:3])} ...")
    command = [*command, "--message-format", "json-render-diagnostics"]
    try:
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=BUILD_SECONDS_MAX)
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(f"{name} could not be built") from error
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    paths = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == name]
    if not paths:
        raise Missing(f"{name} was built, and cargo does not say where")
    return pathlib.Path(paths[-1])
