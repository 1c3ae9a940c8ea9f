"""Which catalog a request is about, and what answers it. How requests come and go is in `bridge`.

The one list of requests is `handlers.table`. It and all that it needs of the catalog are imported by `hello`, once it
is known that the versions fit: that takes longer than the start.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

import msgspec

from lakelog.log.errors import InvalidInput, LakelogError
from lakelog.spark.frames import Beside
from lakelog.spark.jar import version
from lakelog.spark.requests import process

if TYPE_CHECKING:
    from lakelog.spark.handlers.table import Entry
    from lakelog.spark.open_catalog import OpenCatalog
    from lakelog.spark.requests.base import Request

T = TypeVar("T", bound=msgspec.Struct)

_PROCESS = {
    str(request.__struct_config__.tag): msgspec.json.Decoder(request)
    for request in (process.Hello, process.OpenCatalog, process.CloseCatalog)
}


class VersionMismatch(LakelogError):
    """The jar and this package are not of the same version."""

    kind = "version-mismatch"
    explained = True


class Dispatch:
    """Answers requests; safe to share between threads. The first request has to be `hello`."""

    def __init__(self) -> None:
        self._spark = ""
        self._handlers: dict[str, Entry] = {}
        self._reporting_what_happened: Callable[[OpenCatalog, Request], AbstractContextManager[None]]
        self._catalogs: dict[int, OpenCatalog] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def answer(
        self, method: str, params: bytes | msgspec.Raw, catalog: int | None = None, *, is_first: bool = False
    ) -> tuple[msgspec.Struct, Beside]:
        """Return the answer and what stands beside it. LakelogError for whatever the user should know about.

        `is_first`: the request is not a retry.
        """
        if method in _PROCESS:
            return self._of_process(_decoded(_PROCESS[method], method, params)), b""
        entry = self._handlers.get(method)
        if entry is None:
            raise VersionMismatch(
                f"the Spark adapter sent the request {method!r}, which lakelog {version()} does not know: use the "
                "jar that `python -m lakelog.spark jar` prints"
            )
        asked = _decoded(entry.decoder, method, params)
        at = self.opened(catalog)
        with at.turns:
            if entry.is_change:
                retried = nullcontext() if is_first else self._reporting_what_happened(at, asked)
                with at.writing_for(asked), retried:
                    answered = entry.handler(at, asked)
            else:
                answered = entry.handler(at, asked)
        return answered if isinstance(answered, tuple) else (answered, b"")

    def opened(self, catalog: int | None) -> OpenCatalog:
        """Return an open catalog. InvalidInput for one that is not open, which is a bug of the adapter."""
        found = None if catalog is None else self._catalogs.get(catalog)
        if found is None:
            raise InvalidInput(f"the catalog {catalog} is not open in this process: load it again")
        return found

    def _of_process(self, asked: msgspec.Struct) -> msgspec.Struct:
        match asked:
            case process.Hello():
                return self._hello(asked)
            case process.OpenCatalog():
                return self._open(asked)
            case process.CloseCatalog():
                return self._close(asked)
            case _:
                raise AssertionError(f"{asked} is asked of a catalog")

    def _hello(self, asked: process.Hello) -> process.Welcome:
        ours, theirs = version(), asked.version
        if ours != theirs:
            raise VersionMismatch(
                f"the Spark adapter's jar is of lakelog {theirs}, but the Python package is {ours}: use the jar that "
                "`python -m lakelog.spark jar` prints there, or install the same version in both places"
            )
        # Here, while nothing else is asked: of two threads that import a package and a module of it at the same
        # moment, one may get a module that is only half loaded.
        from lakelog.spark.handlers.table import HANDLERS
        from lakelog.spark.retried import reporting_what_happened

        self._spark, self._handlers = asked.spark, HANDLERS
        self._reporting_what_happened = reporting_what_happened
        return process.Welcome(version=ours)

    def _open(self, asked: process.OpenCatalog) -> process.Opened:
        from lakelog.spark.open_catalog import OpenCatalog

        opened = OpenCatalog(asked.settings, self._spark)
        with self._lock:
            number = next(self._numbers)
            self._catalogs[number] = opened
        return process.Opened(catalog=number)

    def _close(self, asked: process.CloseCatalog) -> process.Closed:
        with self._lock:
            closed = self._catalogs.pop(asked.catalog, None)
        if closed is not None:
            closed.close()
        return process.Closed()


def _decoded(decoder: msgspec.json.Decoder[T], method: str, params: bytes | msgspec.Raw) -> T:
    """Return a request. VersionMismatch where it is not made as this package knows it."""
    try:
        return decoder.decode(params)
    except msgspec.ValidationError as error:
        raise VersionMismatch(
            f"the Spark adapter's request {method!r} is not as lakelog {version()} knows it ({error}): use the jar "
            "that `python -m lakelog.spark jar` prints"
        ) from None
