"""A workflow of DBOS that answers with its input, behind FastAPI, as its documentation shows it.

usage: dbos_echo.py PORT DATABASE_FILE

The key of a request is the workflow's id, so a repeat is the same workflow. There is no step in it: a step would be one
commit more for each job. DBOS leaves the journal of SQLite at its default; we give it the write-ahead log, which needs
fewer syncs a commit, and leave `synchronous` at FULL. Workflow and handler are `async`: in a trial on a
busy machine that was faster than threads at 1 and at 128 clients, and neither was clearly ahead at 32.
"""

import sqlite3
import sys

import uvicorn
from dbos import DBOS, SetWorkflowID
from fastapi import Body, FastAPI, Header

port, path = int(sys.argv[1]), sys.argv[2]
with sqlite3.connect(path) as file:
    file.execute("PRAGMA journal_mode=WAL")

app = FastAPI()
dbos = DBOS(config={"name": "echo", "system_database_url": f"sqlite:///{path}", "log_level": "WARNING"})


@DBOS.workflow()
async def echo(payload: dict) -> dict:
    return payload


@app.post("/echo")
async def call(payload: dict = Body(), idempotency_key: str = Header()) -> dict:
    with SetWorkflowID(idempotency_key):
        return await echo(payload)


@app.get("/settings")
def settings() -> dict:
    """What is in force on the very connections that DBOS commits with."""
    with dbos._sys_db.engine.connect() as connection:
        return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")}


if __name__ == "__main__":
    DBOS.launch()
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
