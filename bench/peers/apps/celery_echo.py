"""A task of Celery that answers with its input. The broker and the results are in one Redis, named by REDIS_URL.

Acknowledged late: a task whose worker dies is given to another, as every other system here does it.
"""

import os

from celery import Celery

app = Celery("celery_echo", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])
app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, broker_connection_retry_on_startup=True)


@app.task(name="echo")
def echo(payload: dict) -> dict:
    return payload
