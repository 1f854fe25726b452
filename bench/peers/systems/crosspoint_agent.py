"""Crosspoint with an agent in another process, which takes jobs and reports results over the native API.

The agent is a mode of the load generator of `scripts/bench`.
"""

import install
from processes import free_port
from systems import crosspoint

TITLE = "Crosspoint, agent in another process"
# Some agent must be configured, or the samples would be there, the built-in echo among them.
WITHOUT_SAMPLES = """[[agent]]
name = "nobody"
contract = "builtin"
run = "fail"
work = ["nothing"]
"""


def prepare():
    return {**crosspoint.prepare(), "agent": install.echo_agent()}


def start(group, tools):
    port = free_port()
    config = group.directory / "crosspoint.toml"
    config.write_text(WITHOUT_SAMPLES)
    running = crosspoint.serve(group, tools, port, "--config", config)
    group.await_port(port)
    # The agent's name, and the work that it takes.
    group.start("agent", [tools["agent"], "--echo-agent", f"http://127.0.0.1:{port}", "echo", "echo"])
    return running
