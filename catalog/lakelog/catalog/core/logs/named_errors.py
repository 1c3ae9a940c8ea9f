"""Errors about stored bytes, as they leave the log that stores them: each gets the name of that log.

Lists of files are read long after the commit that names them, by code that does not know their place. So an
error in such a list is raised without a place, as a FormatError or as Arrow's own error, and gets its place
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lakelog.log.errors import FormatError
from lakelog.log.grammar import shortened

_OF_ARROW = (pa.ArrowException, KeyError, IndexError, OverflowError, MemoryError)


@contextmanager
def naming(location: str) -> Iterator[None]:
    """Have each FormatError name the log at `location`.

    Raise FormatError if Arrow cannot read its lists of files.
    """
    try:
        yield
    except FormatError as error:
        if location in error.message:
            raise
        raise type(error)(f"{location}: {error.message}") from error
    except _OF_ARROW as error:
        raise FormatError(
            f"{location} has a list of files that cannot be read ({shortened(str(error))}): it was truncated or "
            "altered, or a faulty client wrote it"
        ) from error
