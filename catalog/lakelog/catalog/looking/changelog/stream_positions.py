"""How far a stream has read a table: the contents of a checkpoint, as JSON. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import msgspec

from lakelog.catalog.core.schema import ready
from lakelog.catalog.core.state import FilesChanged
from lakelog.log.errors import FormatError, InvalidInput

FORMAT = 1


class StreamPosition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The position at which a stream continues: at the file `index` of `version`.

    The files of a version are the files that it added, or, with `whole`, all files that the table had.
    `table` and `generation` identify the table. `begun` and `begun_whole` are the version and `whole` of the
    stream's first position. All later positions have them, so that a process that has lost the first position
    finds it. `read` is the shortened hash of the commit of the last version that was read. After a restore to
    an earlier time, that version may be another commit. Checkpoints of earlier releases do not have `read`.
    """

    reads: ClassVar[str] = "rows that are added"

    format: int = FORMAT
    table: str
    generation: int
    version: int
    index: int = 0
    whole: bool = False
    begun: int
    begun_whole: bool = False
    read: str | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def first(cls, table: str, generation: int, version: int, *, whole: bool = False) -> Self:
        """Return the position at which a stream begins."""
        return cls(
            table=table, generation=generation, version=version, whole=whole, begun=version, begun_whole=whole
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the position that `to_json` wrote.

        Raises FormatError for another text. Raises InvalidInput if the position is from another kind of
        stream.
        """
        try:
            position = msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            kinds: list[type[StreamPosition]] = [StreamPosition, *StreamPosition.__subclasses__()]
            for kind in kinds:
                if kind is not cls and _is_position(text, kind):
                    raise InvalidInput(
                        f"the checkpoint is of a stream that reads {kind.reads}, but this stream reads {cls.reads}: "
                        "start it with a new checkpoint"
                    ) from None
            raise FormatError(
                f"the checkpoint has {text!r}, which is not a position in a lakelog table ({error}): it is of another "
                "source, or of a newer lakelog"
            ) from None
        if position.format != FORMAT:
            raise FormatError(
                f"the checkpoint's position has the format {position.format}, but this lakelog knows {FORMAT}: "
                "upgrade it"
            )
        return position

    def to_json(self) -> str:
        """Return the same text for the same position."""
        return msgspec.json.encode(self).decode()

    def moved(self, version: int, index: int = 0) -> StreamPosition:
        """Return the position at a file that `version` added."""
        return msgspec.structs.replace(self, version=version, index=index, whole=False, read=msgspec.UNSET)

    def within(self, index: int) -> StreamPosition:
        """Return the position at another file of the same version."""
        return msgspec.structs.replace(self, index=index, read=msgspec.UNSET)

    def origin(self) -> StreamPosition:
        """Return the stream's first position."""
        return msgspec.structs.replace(
            self, version=self.begun, index=0, whole=self.begun_whole, read=msgspec.UNSET
        )

    @property
    def last_read(self) -> int:
        """The last version that was read, at least in part, before this position. 0 if there is none."""
        return self.version if self.whole or self.index else self.version - 1

    @property
    def order(self) -> tuple[int, bool, int]:
        """A key that is larger for a later position of the same stream."""
        return self.version, not self.whole, self.index


def _is_position(text: str, kind: type[StreamPosition]) -> bool:
    try:
        msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        return False
    return True


ready(StreamPosition)


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The limits of a batch; None: no limit. A batch has at least a file, however large that is."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for name in ("files", "bytes", "rows"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise InvalidInput(f"a batch of at most {limit} {name} would be empty: give 1 or more")


@dataclass(frozen=True, slots=True)
class BatchSize:
    """The size of a batch so far."""

    files: int = 0
    bytes: int = 0
    rows: int = 0

    def with_file(self, size_bytes: int, rows: int) -> BatchSize:
        return replace(self, files=self.files + 1, bytes=self.bytes + size_bytes, rows=self.rows + rows)

    def with_change(self, event: FilesChanged) -> BatchSize:
        """Return the size with all files that an operation added or removed, or deleted rows of."""
        return self + BatchSize(
            event.added_files + event.removed_files + event.changed_files,
            event.added_bytes + event.removed_bytes,
            event.added_rows + event.removed_rows + event.deleted_rows,
        )

    def __add__(self, other: BatchSize) -> BatchSize:
        return BatchSize(self.files + other.files, self.bytes + other.bytes, self.rows + other.rows)

    def exceeds(self, limits: StreamLimits) -> bool:
        return any(
            limit is not None and spent > limit
            for spent, limit in (
                (self.files, limits.files),
                (self.bytes, limits.bytes),
                (self.rows, limits.rows),
            )
        )
