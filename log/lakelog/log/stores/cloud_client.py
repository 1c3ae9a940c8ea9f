"""obstore's client of a bucket of Google Cloud Storage, or of a container of Azure, and the server's time.

obstore finds credentials by the platform's own chain, and renews them. It resends nothing here (`max_retries` is 0):
the store resends, so that each request is counted and a conditional put is sent once. Its threads do not survive a
fork, and a request in the child would never end. So a child is refused.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from lakelog.log.errors import StorageError, Unsupported, install_command
from lakelog.log.stores.cloud_errors import AZURE, GOOGLE, CloudWords, NoAnswer, NoCredentials

CONNECT_TIMEOUT_S = 10
ANSWER_TIMEOUT_S = 120
"""A request with its whole answer. Larger objects are written in parts, and read in parts by Parquet readers."""
TIME_TIMEOUT_S = 10

_used_in: list[int] = []
"""The process that has obstore's threads."""


@dataclass(eq=False)
class CloudClient:
    """A bucket by obstore. Threads may share it."""

    words: CloudWords
    bucket: str
    endpoint: str
    """The server's address, also if no option names it."""
    is_named: bool
    """Whether an option names the endpoint: then it may be an emulator, or a gateway."""
    make: Callable[[Any, dict[str, Any]], Any]
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _made: Any = field(default=None, init=False)

    def store(self) -> Any:
        """Return obstore's store. Raises StorageError in a forked child, Unsupported without obstore."""
        if _used_in and _used_in[0] != os.getpid():
            raise StorageError(
                f"{self.words.name} cannot be used in a forked process whose parent has used it: obstore's threads do "
                "not survive a fork; start processes by multiprocessing.get_context('spawn')",
                location=self.endpoint,
            )
        with self._lock:
            if self._made is None:
                try:
                    import obstore.store
                except ImportError:
                    extra = "gcs" if self.words is GOOGLE else "azure"
                    raise Unsupported(
                        f"{self.words.name} needs obstore; install it with: {install_command('obstore', extra)}"
                    ) from None
                settings = {
                    "client_options": {
                        "allow_http": self.endpoint.startswith("http://"),
                        "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
                        "timeout": timedelta(seconds=ANSWER_TIMEOUT_S),
                    },
                    "retry_config": {"max_retries": 0},
                }
                try:
                    self._made = self.make(obstore.store, settings)
                except Exception:  # its text may quote a key
                    raise NoCredentials("open", 401, "no credentials", {}, 0) from None
                _used_in[:] = [os.getpid()]
        return self._made

    def server_date(self) -> str:
        """Return the Date of an answer to a request without credentials, whatever it says. Raises NoAnswer."""
        import urllib.error
        import urllib.request
        from http.client import HTTPException
        from urllib.parse import urlsplit

        # urllib takes a user and a password of an endpoint for a part of the host's name.
        parts = urlsplit(self.endpoint)
        address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        request = urllib.request.Request(f"{address}/", method="HEAD")
        try:
            with urllib.request.urlopen(request, timeout=TIME_TIMEOUT_S) as answer:
                return str(answer.headers.get("Date") or "")
        except urllib.error.HTTPError as error:
            return str(error.headers.get("Date") or "")
        except (OSError, HTTPException) as error:
            raise NoAnswer(f"time: {type(error).__name__}") from None


def google_client(bucket: str, endpoint: str | None) -> CloudClient:
    """Return the client of a bucket of Google Cloud Storage. Makes no request."""

    def make(stores: Any, settings: dict[str, Any]) -> Any:
        config: dict[str, Any] = {"base_url": endpoint} if endpoint else {}
        if endpoint and endpoint.startswith("http://"):
            config["bearer_token"] = "none"  # a real token is never sent without encryption
        return stores.GCSStore(bucket, config=config, **settings)

    address = (endpoint or "https://storage.googleapis.com").rstrip("/")
    return CloudClient(GOOGLE, bucket, address, endpoint is not None, make)


def azure_client(container: str, host: str, endpoint: str | None) -> CloudClient:
    """Return the client of a container of an Azure account, whose host is that of its URLs. Makes no request."""
    address = (endpoint or f"https://{host.replace('.dfs.', '.blob.', 1)}").rstrip("/")

    def make(stores: Any, settings: dict[str, Any]) -> Any:
        config = {"account_name": host.partition(".")[0], "endpoint": address}
        return stores.AzureStore(container, config=config, **settings)

    return CloudClient(AZURE, container, address, endpoint is not None, make)
