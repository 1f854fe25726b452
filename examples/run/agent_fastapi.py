#!/usr/bin/env python3
"""The same run agent with FastAPI: python3 agent_fastapi.py --port 8000"""

import contextlib
import json
import socket
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, field_validator
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException

from agent import TASKS, events, port, refusal, sse  # what it does, and what it says about that

app = FastAPI(title="Words", description="Counts words and summarises lines, by the run contract.")


class Run(BaseModel):
    """What we read of a request; members that we do not know do no harm."""

    request_id: str = Field(min_length=1)
    task_type: str = Field(min_length=1)
    inputs: dict[str, Any] = {}

    @field_validator("task_type")
    @classmethod
    def is_ours(cls, task_type):
        if task_type not in TASKS:
            raise PydanticCustomError("unsupported_task_type", "this agent takes " + " and ".join(TASKS))
        return task_type


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/health/ready")
def ready():
    return {"status": "ready"}


@app.post("/agents/run/sync")
def run_sync(run: Run):
    *_, (_, final) = events(run.model_dump())
    return give(200, final)  # Also of a task that failed: the run was as it should be.


@app.post("/agents/run/stream")
def run_stream(run: Run):
    told = (sse(name, data) for name, data in events(run.model_dump()))
    return StreamingResponse(told, media_type="text/event-stream")


@app.exception_handler(RequestValidationError)
async def malformed(_, error):
    """FastAPI's own answer would be a 422 of another shape, with what was sent in it."""
    first = error.errors()[0]
    if first["type"] == "unsupported_task_type":
        return give(400, refusal(error.body, "UNSUPPORTED_TASK_TYPE", first["msg"]))
    place = ".".join(str(part) for part in first["loc"])
    return give(400, refusal(error.body, "VALIDATION_ERROR", f"{place}: {first['msg']}"))


@app.exception_handler(HTTPException)
async def elsewhere(_, error):
    """Unknown paths and methods, and bodies that could not be read at all."""
    return give(error.status_code, refusal(None, "VALIDATION_ERROR", error.detail))


def give(status, document):
    # Escaped to ASCII, where JSONResponse would stumble over half a character in a text.
    return Response(json.dumps(document), status, media_type="application/json")


def main():
    listening = socket.create_server(("127.0.0.1", port(__doc__)))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    # Callers keep connections for their next request, so they are the ones to close them.
    settled = uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=300)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(settled).run(sockets=[listening])


if __name__ == "__main__":
    main()
