"""A Delta table as a source: its versions, each with what it changed, and its newest one with all that is live.

Rule: what the log had when it was listed first is the table, whatever its writers do meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.schema import PartitionSpec, Schema
from lakelog.catalog.core.state import COMMENT
from lakelog.catalog.formats.imports.delta.actions import (
    DEFINITION,
    EVERYTHING,
    Action,
    Add,
    CommitInfo,
    Protocol,
    TableMetadata,
    commit_info_of,
)
from lakelog.catalog.formats.imports.delta.columns import ColumnIds
from lakelog.catalog.formats.imports.delta.definition import Definition, definition_of
from lakelog.catalog.formats.imports.delta.entries import Entries
from lakelog.catalog.formats.imports.delta.log_files import LOG, LogFiles, list_log
from lakelog.catalog.formats.imports.delta.partition_values import time_zone_of
from lakelog.catalog.formats.imports.delta.paths import file_url
from lakelog.catalog.formats.imports.source import SourceVersion
from lakelog.log import OpenUrl, canonical_url
from lakelog.log.errors import FormatError, InvalidInput, Unsupported


def delta_source(url: str, open_url: OpenUrl, *, time_zone: str | None = None) -> DeltaSource:
    """Return the Delta table at `url`, a folder or URL, as it is now. `time_zone` is that of its writers.

    NotFound where there is none; Unsupported for a table that needs what lakelog does not do; FormatError, naming the
    object, for a damaged log. Costs a LIST, the commits since the last checkpoint, and a GET or two.
    """
    return DeltaSource(url, open_url, time_zone)


@dataclass(slots=True)
class _Changes:
    """What one commit does: files by their paths."""

    added: dict[str, Add] = field(default_factory=dict)
    removed: dict[str, Add] = field(default_factory=dict)


@dataclass(slots=True)
class _Replay:
    """The table as the actions so far make it: `live` has its files by their paths."""

    url: str
    protocol: Protocol | None = None
    metadata: TableMetadata | None = None
    live: dict[str, Add] = field(default_factory=dict)

    def define(self, actions: Iterable[Action]) -> bool:
        """Take what actions say of columns and features. Return whether they said anything."""
        before = self.protocol, self.metadata
        for action in actions:
            self.protocol = action.protocol or self.protocol
            self.metadata = action.metadata or self.metadata
        return before != (self.protocol, self.metadata)

    def load(self, actions: Iterable[Action]) -> None:
        """Take all actions of a checkpoint."""
        for action in actions:
            self.define((action,))
            if action.add is not None:
                path = file_url(action.add.path, self.url)
                if path in self.live:
                    raise self._twice(path)
                self.live[path] = action.add

    def commit(self, actions: list[Action]) -> _Changes:
        """Take the actions of a commit, which have no order among themselves."""
        self.define(actions)
        changes = _Changes()
        for remove in (action.remove for action in actions if action.remove is not None):
            path = file_url(remove.path, self.url)
            before = self.live.get(path)
            # A tombstone of the file with other deleted rows is not one of what is live.
            if before is not None and before.vector_id == remove.vector_id:
                changes.removed[path] = self.live.pop(path)
        added: set[str] = set()
        for add in (action.add for action in actions if action.add is not None):
            path = file_url(add.path, self.url)
            if path in added:
                raise self._twice(path)
            added.add(path)
            before = self.live.pop(path, None)
            if before is None:
                before = changes.removed.get(path)
            self.live[path] = add
            if before is not None and (before.vector_id, before.size) == (add.vector_id, add.size):
                # The same file once more, with other words about it.
                changes.removed.pop(path, None)
                continue
            if before is not None:
                changes.removed[path] = before
            changes.added[path] = add
        return changes

    def definition(self, ids: ColumnIds) -> Definition:
        if self.protocol is None or self.metadata is None:
            lacking = "protocol" if self.protocol is None else "metaData"
            raise FormatError(
                f"the log of the Delta table {self.url} has no {lacking}: it was truncated or altered"
            )
        return definition_of(self.protocol, self.metadata, ids, self.url)

    def _twice(self, path: str) -> FormatError:
        return FormatError(
            f"the log of the Delta table {self.url} has the file {path} twice in one version: another program wrote it"
        )


class DeltaSource:
    """See `Source`. `notes` are what the table demands of its writers, and an imported one does not."""

    format = "delta"

    def __init__(self, url: str, open_url: OpenUrl, time_zone: str | None = None) -> None:
        self.url = canonical_url(url)
        self.metadata = f"{self.url}/{LOG}"
        self._open_url = open_url
        self._zone = None if time_zone is None else time_zone_of(time_zone)
        self._log = list_log(*open_url(f"{self.url}/{LOG}"), everything=False)
        self._newest = self._log.newest
        replay = _Replay(self.url)
        base = self._log.base_of(self._newest)
        if base is not None:
            replay.define(self._log.read_checkpoint(base, DEFINITION))
        first = 0 if base is None else base.version + 1
        for _, actions in self._log.read_commits(first, self._newest):
            replay.define(actions)
        self.notes = replay.definition(ColumnIds()).notes
        assert replay.metadata is not None
        self._metadata = replay.metadata

    @property
    def identity(self) -> str:
        return self._metadata.id

    @property
    def properties(self) -> Mapping[str, str]:
        """Those of users: Delta's own are orders to its writers."""
        found = {
            name: value
            for name, value in self._metadata.configuration.items()
            if value is not None and not name.lower().startswith("delta.")
        }
        comment = self._metadata.description
        return found if comment is None else {**found, COMMENT: comment}

    def versions(self, newest: int) -> Iterator[SourceVersion]:
        """See `Source`. Older versions than the log can make any more are not among them."""
        if newest < 1:
            raise InvalidInput(f"{newest} versions cannot be imported: give a number of at least 1")
        wanted = max(0, self._newest - newest + 1)
        log = self._log_for(wanted)
        base = log.base_of(wanted)
        first = wanted if base is None else max(wanted, base.version)
        replay = self._at(log, first)
        info = commit_info_of(log.read_commit_if_there(first))
        commits = list(log.read_commits(first + 1, self._newest))
        ids = ColumnIds()
        definitions = [self._past(replay, first, ids)]
        # All columns that there ever are have to be known before the first file is named.
        later = _Replay(self.url, replay.protocol, replay.metadata)
        for version, actions in commits:
            definitions.append(self._past(later, version, ids) if later.define(actions) else definitions[-1])
        entries = Entries(self.url, self._open_url, dict(ids.names), definitions, self._zone, {})
        specs: dict[int, PartitionSpec] = {}
        yield self._version(first, info, definitions[0], specs, entries.of(replay.live, definitions[0]))
        for (version, actions), definition in zip(commits, definitions[1:], strict=True):
            changes = replay.commit(actions)
            yield self._version(
                version,
                commit_info_of(actions),
                definition,
                specs,
                entries.of(changes.added, definition),
                tuple(changes.removed),
            )

    def live(self, known: Mapping[str, DataFile], columns: Schema | None) -> SourceVersion:
        """See `Source`."""
        replay = self._at(self._log, self._newest)
        ids = ColumnIds(columns)
        definition = replay.definition(ids)
        if columns is not None and any(not columns.has_id(id) for id in definition.field_ids):
            # A new column may be one that older files have, which only their footers say.
            known = {}
        entries = Entries(self.url, self._open_url, dict(ids.names), [definition], self._zone, known)
        info = commit_info_of(self._log.read_commit_if_there(self._newest))
        return self._version(self._newest, info, definition, {}, entries.of(replay.live, definition))

    def _past(self, replay: _Replay, version: int, ids: ColumnIds) -> Definition:
        """Return what a version was. Unsupported, naming it, where the newest one needs less."""
        try:
            return replay.definition(ids)
        except Unsupported as error:
            raise Unsupported(
                f"version {version} of the source cannot come along ({error.message}). Newer ones can: import at most "
                f"{self._newest - version} versions"
            ) from None

    def _log_for(self, wanted: int) -> LogFiles:
        """Return a listing in which a version can be found, if there is one."""
        listed = self._log
        oldest = min((each.version for each in listed.checkpoints), default=None)
        if listed.complete or (oldest is not None and oldest <= wanted):
            return listed
        return list_log(listed.store, listed.prefix, everything=True).up_to(self._newest)

    def _at(self, log: LogFiles, version: int) -> _Replay:
        replay = _Replay(self.url)
        base = log.base_of(version)
        if base is not None:
            replay.load(log.read_checkpoint(base, EVERYTHING))
        for _, actions in log.read_commits(0 if base is None else base.version + 1, version):
            replay.commit(actions)
        return replay

    @staticmethod
    def _version(
        version: int,
        info: CommitInfo,
        definition: Definition,
        specs: dict[int, PartitionSpec],
        added: tuple[DataFile, ...],
        removed: tuple[str, ...] = (),
    ) -> SourceVersion:
        specs[definition.spec.id] = definition.spec
        return SourceVersion(
            id=str(version),
            time_us=info.time_us,
            operation=info.word,
            schema=definition.schema,
            spec=definition.spec,
            specs=tuple(specs.values()),
            added=added,
            removed=removed,
        )
