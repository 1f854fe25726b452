"""The systems that are compared: a module each, which says how it is got, started and asked, and what it does for a job.

Each is alone while it is measured, on an empty store, and answers only when the job's result is durable.

- `TITLE` is what the tables call it.
- `prepare()` gets everything and gives the programs and their `versions`; raises `install.Missing`.
- `start(group, tools)` starts its processes in the group and gives a `running.Running`, which may not answer yet.
"""

from systems import celery, crosspoint, crosspoint_agent, crosspoint_run, dbos, nats, restate

# In the order of the rounds and of the tables.
ALL = {
    "crosspoint": crosspoint,
    "crosspoint-agent": crosspoint_agent,
    "crosspoint-run": crosspoint_run,
    "restate": restate,
    "dbos": dbos,
    "celery": celery,
    "nats": nats,
}
