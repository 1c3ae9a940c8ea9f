"""The server of `lakelog ui` in a thread of this process, and requests to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.patience import PATIENCE_S

from lakelog.catalog import Catalog
from lakelog.cli.ui.answers import PageAnswers
from lakelog.rest import serve
from lakelog.rest.serving import RunningServer

TOKEN = "the-token-of-the-test"


@contextmanager
def live(warehouse: str, **options: Any) -> Iterator[str]:
    """Serve the pages of a warehouse; the URL is that of its first page."""
    servers: list[tuple[str, RunningServer]] = []
    ready = threading.Event()

    def began(url: str, server: RunningServer) -> None:
        servers.append((url, server))
        ready.set()

    answers = PageAnswers(Catalog(warehouse, **options), TOKEN, 300)
    thread = threading.Thread(target=lambda: serve(answers, port=0, began=began))
    thread.start()
    assert ready.wait(PATIENCE_S)
    ((url, server),) = servers
    try:
        yield f"{url}/{TOKEN}/"
    finally:
        server.shutdown()
        thread.join()
        answers.close()


def requested(
    page: str, path: str, method: str = "GET", headers: dict[str, str] | None = None, **query: str
) -> tuple[HTTPResponse, Any]:
    """Send a request to a path beside the page; return the response, and its JSON or text."""
    base = urlsplit(page)
    connection = HTTPConnection(str(base.hostname), base.port, timeout=PATIENCE_S)
    target = path if path.startswith("/") else base.path + path
    try:
        connection.request(method, f"{target}?{urlencode(query)}", headers=headers or {})
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    return response, json.loads(text) if response.headers[
        "Content-Type"
    ] == "application/json" and text else text
