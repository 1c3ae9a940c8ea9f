"""A server of a warehouse in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

from lakelog.catalog import Catalog
from lakelog.rest import Answers, serve


@contextmanager
def served(warehouse: str) -> Iterator[str]:
    """Serve a warehouse; the URL is that of its REST catalog."""
    servers: list[ThreadingHTTPServer] = []
    urls: list[str] = []
    ready = threading.Event()

    def began(url: str, server: ThreadingHTTPServer) -> None:
        urls.append(url)
        servers.append(server)
        ready.set()

    thread = threading.Thread(target=lambda: serve(Answers(Catalog(warehouse)), port=0, began=began))
    thread.start()
    assert ready.wait(10)
    yield urls[0]
    servers[0].shutdown()
    thread.join()
