"""Paths in a Delta log: URIs, relative to the table or absolute, as the places of files that lakelog knows. Pure."""

from __future__ import annotations

import re
from urllib.parse import unquote

import msgspec

from lakelog.log import canonical_url
from lakelog.log.errors import FormatError, InvalidInput
from lakelog.log.grammar import FilePath

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def file_url(path: str, table: str) -> str:
    """Return the absolute path or URL of a file of the table at `table`. FormatError, InvalidInput."""
    if not _ABSOLUTE.match(path) and not path.startswith("/"):
        url = f"{table}/{unquote(path)}"
    elif path.startswith("file:"):
        # It takes a URI itself.
        url = canonical_url(path)
    else:
        url = _canonical(unquote(path), table)
    try:
        return msgspec.convert(url, FilePath)
    except msgspec.ValidationError:
        raise FormatError(
            f"the log of the Delta table {table} has the file {path!r}, which is not the path of a file"
        ) from None


def _canonical(url: str, table: str) -> str:
    try:
        return canonical_url(url)
    except InvalidInput as error:
        raise InvalidInput(
            f"the Delta table {table} has a file elsewhere, which lakelog cannot read there: {error.message}"
        ) from None
