"""Paths in a Delta log, which are URIs, relative or absolute, become places of files that lakelog knows.

Pure.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import msgspec

from lakelog.log import canonical_url
from lakelog.log.errors import FormatError, InvalidInput
from lakelog.log.grammar import FilePath

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_STORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def file_url(path: str, table: str) -> str:
    """Return the absolute path or URL of a file of the table at `table`. Raises FormatError or InvalidInput."""
    try:
        return msgspec.convert(_url(path, table), FilePath)
    except (msgspec.ValidationError, UnicodeDecodeError):
        raise FormatError(
            f"the log of the Delta table {table} has the file {path!r}, which is not the path of a file"
        ) from None


def _url(path: str, table: str) -> str:
    if path.startswith("file:"):
        # `canonical_url` decodes the URI itself.
        return canonical_url(path)
    plain_path = unquote(path, errors="strict")
    if not _SCHEME.match(path) and not path.startswith("/"):
        return f"{table}/{plain_path}"
    store = _STORE.match(path)
    if store is None and not (path.startswith("/") and table.startswith("/")):
        # Without a store, the path would be a file of this machine.
        raise InvalidInput(
            f"the Delta table {table} has the file {path!r} elsewhere, and does not say on which store: copy the rows "
            "by a query"
        )
    if store is not None and "//" in plain_path[store.end() :]:
        raise InvalidInput(
            f"the Delta table {table} has the file {path!r}, which lakelog cannot read: two slashes follow each other "
            "there; copy the rows by a query"
        )
    return _canonical(plain_path, table)


def _canonical(url: str, table: str) -> str:
    try:
        return canonical_url(url)
    except InvalidInput as error:
        raise InvalidInput(
            f"the Delta table {table} has a file elsewhere, which lakelog cannot read there: {error.message}"
        ) from None
