"""The catalog and the handler of each request.

`bridge` reads and writes the requests. The only list of requests is `handlers.entries`. `hello` imports it,
with all that it needs of the catalog, after the versions are known to fit. That takes longer than the start.
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
    from lakelog.spark.handlers.entries import RequestEntry
    from lakelog.spark.open_catalog import ServedCatalog
    from lakelog.spark.requests.base import Request

T = TypeVar("T", bound=msgspec.Struct)

_PROCESS = {
    str(request.__struct_config__.tag): msgspec.json.Decoder(request)
    for request in (process.Hello, process.OpenCatalog, process.CloseCatalog)
}


class VersionMismatch(LakelogError):
    """The jar and this package have different versions."""

    kind = "version-mismatch"
    explained = True


class RequestDispatch:
    """Answers requests. Safe to share between threads. The first request has to be `hello`."""

    def __init__(self) -> None:
        self._spark = ""
        self._handlers: dict[str, RequestEntry] = {}
        self._reporting_what_happened: Callable[[ServedCatalog, Request], AbstractContextManager[None]]
        self._catalogs: dict[int, ServedCatalog] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def answer(
        self, method: str, params: bytes | msgspec.Raw, catalog: int | None = None, *, is_first: bool = False
    ) -> tuple[msgspec.Struct, Beside]:
        """Return the answer, and the bytes that go with it.

        Raises LakelogError for all errors that the user should know. `is_first` says that the request is not
        a retry.
        """
        if method in _PROCESS:
            return self._of_process(_decoded(_PROCESS[method], method, params)), b""
        entry = self._handlers.get(method)
        if entry is None:
            raise VersionMismatch(
                f"the Spark adapter sent the request {method!r}, which lakelog {version()} does not know: use the "
                "jar that `python -m lakelog.spark jar` prints"
            )
        request = _decoded(entry.decoder, method, params)
        open_catalog = self.opened(catalog)
        with open_catalog.turns:
            if entry.is_change:
                retry_report = (
                    nullcontext() if is_first else self._reporting_what_happened(open_catalog, request)
                )
                with open_catalog.writing_for(request), retry_report:
                    answer = entry.handler(open_catalog, request)
            else:
                answer = entry.handler(open_catalog, request)
        return answer if isinstance(answer, tuple) else (answer, b"")

    def opened(self, catalog: int | None) -> ServedCatalog:
        """Return an open catalog. Raises InvalidInput if it is not open, which is a bug of the adapter."""
        open_catalog = None if catalog is None else self._catalogs.get(catalog)
        if open_catalog is None:
            raise InvalidInput(f"the catalog {catalog} is not open in this process: load it again")
        return open_catalog

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
        own_version, jar_version = version(), asked.version
        if own_version != jar_version:
            raise VersionMismatch(
                f"the Spark adapter's jar is of lakelog {jar_version}, but the Python package is {own_version}: use "
                "the jar that `python -m lakelog.spark jar` prints there, or install the same version in both places"
            )
        # The import is here, while there is no other request. If two threads import a package and its module
        # at the same moment, a thread may get a module that is only half loaded.
        from lakelog.spark.handlers.entries import HANDLERS
        from lakelog.spark.retried import reporting_what_happened

        self._spark, self._handlers = asked.spark, HANDLERS
        self._reporting_what_happened = reporting_what_happened
        return process.Welcome(version=own_version)

    def _open(self, asked: process.OpenCatalog) -> process.OpenedCatalog:
        from lakelog.spark.open_catalog import ServedCatalog

        open_catalog = ServedCatalog(asked.settings, self._spark)
        with self._lock:
            number = next(self._numbers)
            self._catalogs[number] = open_catalog
        return process.OpenedCatalog(catalog=number)

    def _close(self, asked: process.CloseCatalog) -> process.ClosedCatalog:
        with self._lock:
            open_catalog = self._catalogs.pop(asked.catalog, None)
        if open_catalog is not None:
            open_catalog.close()
        return process.ClosedCatalog()


def _decoded(decoder: msgspec.json.Decoder[T], method: str, params: bytes | msgspec.Raw) -> T:
    """Return a request. Raises VersionMismatch if this package does not know its form."""
    try:
        return decoder.decode(params)
    except msgspec.ValidationError as error:
        raise VersionMismatch(
            f"the Spark adapter's request {method!r} is not as lakelog {version()} knows it ({error}): use the jar "
            "that `python -m lakelog.spark jar` prints"
        ) from None
