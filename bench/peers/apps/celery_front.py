"""What stands before Celery, so that the same client can call it: a request is a task, and its answer the task's result.

usage: celery_front.py PORT

On gevent, because Celery then has one greenlet that waits for the results of all; with a thread for each request, 128 clients
were hardly answered at all. The key of a request is the task's id. Celery itself does not recognise a repeat; none is sent
here.
"""

from gevent import monkey

monkey.patch_all()

import json
import socket
import sys

from celery_echo import echo
from gevent.pywsgi import WSGIServer


class Server(WSGIServer):
    """Head and body of an answer are two writes; without this the second waits 40 ms for the client's acknowledgement."""

    def handle(self, client, address):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().handle(client, address)


def call(environ, start_response):
    payload = json.load(environ["wsgi.input"])
    result = echo.apply_async((payload,), task_id=environ["HTTP_IDEMPOTENCY_KEY"]).get(timeout=30)
    body = json.dumps(result, separators=(",", ":")).encode()
    start_response("200 OK", [("content-type", "application/json"), ("content-length", str(len(body)))])
    return [body]


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), call, log=None).serve_forever()
