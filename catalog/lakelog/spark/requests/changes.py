"""Changes of a table as a query reads them, and streams of rows or changes."""

from __future__ import annotations

from lakelog.catalog import Expression
from lakelog.spark.requests.base import Answer, LoadedTableRequest, Message, NamedObject, NamedRef
from lakelog.spark.requests.tables import TableFacts


class LoadChanges(NamedObject, frozen=True, kw_only=True, tag="load_changes"):
    """Return the facts of a table for reading its changes between versions or times.

    Without any of these, they are all changes. With `start_latest`, they begin with the next version, for
    streams.
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
    """The end of a stream of changes: a version, a time, or none."""

    last: int | None = None
    last_us: int | None = None


class ChangesFacts(TableFacts, frozen=True, kw_only=True):
    """The table as of the last of the versions `first` to `last`.

    `may_*` say what kinds of changes there may be.
    """

    first: int
    last: int
    end: ChangesEnd
    may_carry: bool
    may_update: bool
    may_repeat: bool


class PlanChanges(LoadedTableRequest, frozen=True, kw_only=True, tag="plan_changes"):
    """Return the files of loaded changes, as an Arrow stream."""

    first: int
    last: int
    predicate: Expression


class StreamRequest(LoadedTableRequest, frozen=True, kw_only=True):
    """A request about a stream that reads a table.

    `version` is the version that its query has loaded, and `form` the form of its columns. With `changes` it
    reads changes up to that end, without it only added rows.
    """

    name: str
    form: str
    skips_changes: bool
    changes: ChangesEnd | None = None
    skips_expired: bool = False


class StreamForm(LoadedTableRequest, frozen=True, tag="stream_form"):
    """Return the form of the loaded version's columns, which differs from other columns' forms."""


class ChosenForm(Answer, frozen=True, kw_only=True):
    form: str


class StreamStart(StreamRequest, frozen=True, kw_only=True, tag="stream_start"):
    """Return the first position: at a version (or `latest`) or time, else before the present contents."""

    starting_version: int | str | None = None
    starting_timestamp_us: int | None = None


class OpaquePosition(Answer, frozen=True, kw_only=True):
    """A position in a stream, as a text that only Python understands."""

    position: str


class StreamHead(StreamRequest, frozen=True, tag="stream_head"):
    """Return the position after all existing versions."""


class BatchLimits(Message, frozen=True, kw_only=True):
    """The limits of a batch."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None


class StreamNext(StreamRequest, frozen=True, kw_only=True, tag="stream_next"):
    """Return the end of the batch that begins at a position."""

    position: str
    limits: BatchLimits
    until: str | None = None


class NextPosition(Answer, frozen=True, kw_only=True):
    """`head` is the position after all existing versions."""

    position: str
    head: str


class StreamFiles(StreamRequest, frozen=True, kw_only=True, tag="stream_files"):
    """Return the files between two positions, as an Arrow stream."""

    start: str
    end: str


class StreamBatchFiles(Answer, frozen=True, kw_only=True):
    """The kinds of changes that a batch may have. Its files come beside the answer."""

    may_carry: bool
    may_update: bool
    may_repeat: bool
