"""Changes of a table as a query reads them, and streams of rows or changes."""

from __future__ import annotations

from lakelog.catalog.core.schema import Expression
from lakelog.spark.requests.base import Answer, Message, Named, NamedRef, OfLoaded
from lakelog.spark.requests.tables import TableFacts


class LoadChanges(Named, frozen=True, kw_only=True, tag="load_changes"):
    """The facts of a table as changes of it are read, between versions or times; without any of these, of all of them.

    `start_latest`: from the next version on, for streams.
    """

    on: NamedRef | None = None
    start_version: int | None = None
    start_latest: bool = False
    end_version: int | None = None
    start_us: int | None = None
    end_us: int | None = None
    with_start: bool = True
    with_end: bool = True


class ChangesEnd(Message, frozen=True, kw_only=True):
    """Where a stream of changes ends: at a version, a time, or nowhere."""

    last: int | None = None
    last_us: int | None = None


class ChangesFacts(TableFacts, frozen=True, kw_only=True):
    """The table as of the last of the versions `first` to `last`; `may_*` is what may be among the changes."""

    first: int
    last: int
    end: ChangesEnd
    may_carry: bool
    may_update: bool
    may_repeat: bool


class PlanChanges(OfLoaded, frozen=True, kw_only=True, tag="plan_changes"):
    """The files of changes that were loaded, as an Arrow stream."""

    first: int
    last: int
    predicate: Expression


class OfStream(OfLoaded, frozen=True, kw_only=True):
    """About a stream that reads a table: `version` is what its query has loaded, `form` that of its columns.

    With `changes` it reads changes up to that end, without it rows that are added.
    """

    name: str
    form: str
    skips_changes: bool
    changes: ChangesEnd | None = None
    skips_expired: bool = False


class StreamForm(OfLoaded, frozen=True, tag="stream_form"):
    """What distinguishes the columns of the loaded version from others."""


class Form(Answer, frozen=True, kw_only=True):
    form: str


class StreamStart(OfStream, frozen=True, kw_only=True, tag="stream_start"):
    """The first position: at a version (or `latest`) or time, else before the present contents."""

    starting_version: int | str | None = None
    starting_timestamp_us: int | None = None


class Position(Answer, frozen=True, kw_only=True):
    """A position in a stream, in words of which only Python knows the meaning."""

    position: str


class StreamHead(OfStream, frozen=True, tag="stream_head"):
    """The position after all that there is."""


class BatchLimits(Message, frozen=True, kw_only=True):
    """How much one batch may have."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None


class StreamNext(OfStream, frozen=True, kw_only=True, tag="stream_next"):
    """Where the batch ends that begins at a position."""

    position: str
    limits: BatchLimits
    until: str | None = None


class Next(Answer, frozen=True, kw_only=True):
    """`head` is the position after all that there is."""

    position: str
    head: str


class StreamFiles(OfStream, frozen=True, kw_only=True, tag="stream_files"):
    """The files between two positions, as an Arrow stream."""

    start: str
    end: str


class StreamBatchFiles(Answer, frozen=True, kw_only=True):
    """What may be among the changes of a batch, whose files are beside."""

    may_carry: bool
    may_update: bool
    may_repeat: bool
