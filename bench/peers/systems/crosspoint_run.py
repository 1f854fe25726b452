"""Crosspoint at its run door, with an agent of the run contract in another process, which it calls for each job.

The agent is a mode of the load generator of `scripts/bench`.
"""

import install
import payload
from processes import free_port
from systems import crosspoint

TITLE = "Crosspoint, run agent in another process"
CONFIG = """[[agent]]
name = "bench"
contract = "run"
url = "http://127.0.0.1:{agent}"
work = ["bench"]
concurrency = 256
"""
# The key in the header makes each a job of its own.
RUN = payload.compact({"request_id": "bench", "task_type": "bench", "inputs": payload.INPUT})


def prepare():
    return {**crosspoint.prepare(), "agent": install.echo_agent()}


def start(group, tools):
    port, agent = free_port(), free_port()
    config = group.directory / "crosspoint.toml"
    config.write_text(CONFIG.format(agent=agent))
    group.start("agent", [tools["agent"], "--run-agent", f"127.0.0.1:{agent}"])
    # A job that comes before the agent listens would be one that failed.
    group.await_port(agent)
    crosspoint.started(group, tools, port, "--config", config)
    return crosspoint.asked(group, port, "/agents/run/sync", RUN, outputs)


def outputs(response):
    return response["outputs"] if response.get("status") == "ok" else None
