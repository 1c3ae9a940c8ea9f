"""A Delta table as a source: its versions with their changes, and its newest version with all live files.

Rule: the first listing of the log defines the table, whatever its writers add during the import.
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
    AddAction,
    CommitInfo,
    DeltaAction,
    DeltaProtocol,
    TableMetadata,
    commit_info_of,
)
from lakelog.catalog.formats.imports.delta.columns import ColumnIds
from lakelog.catalog.formats.imports.delta.definition import DeltaDefinition, definition_of
from lakelog.catalog.formats.imports.delta.entries import DeltaEntries
from lakelog.catalog.formats.imports.delta.log_files import LOG, LogFiles, list_log
from lakelog.catalog.formats.imports.delta.partition_values import time_zone_of
from lakelog.catalog.formats.imports.delta.paths import file_url
from lakelog.catalog.formats.imports.source import SourceVersion
from lakelog.log import OpenUrl, canonical_url
from lakelog.log.errors import FormatError, InvalidInput, Unsupported


def delta_source(url: str, open_url: OpenUrl, *, time_zone: str | None = None) -> DeltaSource:
    """Return the Delta table at `url`, a folder or URL, as it is now. `time_zone` is its writers' zone.

    Raises NotFound if there is no table, and Unsupported for a table that needs features that lakelog lacks.
    Raises FormatError, naming the object, for a damaged log. Makes a LIST request, up to 2 GET requests, and
    reads the commits since the last checkpoint.
    """
    return DeltaSource(url, open_url, time_zone)


@dataclass(slots=True)
class _Changes:
    """The changes of a commit: files by their paths."""

    added: dict[str, AddAction] = field(default_factory=dict)
    removed: dict[str, AddAction] = field(default_factory=dict)


@dataclass(slots=True)
class _Replay:
    """The table after the actions so far. `live` has its files by their paths."""

    url: str
    protocol: DeltaProtocol | None = None
    metadata: TableMetadata | None = None
    live: dict[str, AddAction] = field(default_factory=dict)

    def define(self, actions: Iterable[DeltaAction]) -> bool:
        """Take columns and features from actions. Return whether these changed."""
        old_definition = self.protocol, self.metadata
        for action in actions:
            self.protocol = action.protocol or self.protocol
            self.metadata = action.metadata or self.metadata
        return old_definition != (self.protocol, self.metadata)

    def load(self, actions: Iterable[DeltaAction]) -> None:
        """Take all actions of a checkpoint."""
        for action in actions:
            self.define((action,))
            if action.add is not None:
                path = file_url(action.add.path, self.url)
                if path in self.live:
                    raise self._twice(path)
                self.live[path] = action.add

    def commit(self, actions: list[DeltaAction]) -> _Changes:
        """Take the actions of a commit, which have no order among themselves."""
        self.define(actions)
        changes = _Changes()
        for remove in (action.remove for action in actions if action.remove is not None):
            path = file_url(remove.path, self.url)
            old_add = self.live.get(path)
            # A tombstone of the same path with other deleted rows does not remove the live file.
            if old_add is not None and old_add.vector_id == remove.vector_id:
                changes.removed[path] = self.live.pop(path)
        added_paths: set[str] = set()
        for add in (action.add for action in actions if action.add is not None):
            path = file_url(add.path, self.url)
            if path in added_paths:
                raise self._twice(path)
            added_paths.add(path)
            old_add = self.live.pop(path, None)
            if old_add is None:
                old_add = changes.removed.get(path)
            self.live[path] = add
            if old_add is not None and (old_add.vector_id, old_add.size) == (add.vector_id, add.size):
                # The same file again, with other metadata.
                changes.removed.pop(path, None)
                continue
            if old_add is not None:
                changes.removed[path] = old_add
            changes.added[path] = add
        return changes

    def definition(self, ids: ColumnIds) -> DeltaDefinition:
        if self.protocol is None or self.metadata is None:
            missing_action = "protocol" if self.protocol is None else "metaData"
            raise FormatError(
                f"the log of the Delta table {self.url} has no {missing_action}: it was truncated or altered"
            )
        return definition_of(self.protocol, self.metadata, ids, self.url)

    def _twice(self, path: str) -> FormatError:
        return FormatError(
            f"the log of the Delta table {self.url} has the file {path} twice in one version: another program wrote it"
        )


class DeltaSource:
    """See `ImportSource`. `notes` are the table's demands on its writers that the imported table does not make."""

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
        """Return the users' properties. Delta's own are instructions to its writers."""
        properties = {
            name: value
            for name, value in self._metadata.configuration.items()
            if value is not None and not name.lower().startswith("delta.")
        }
        comment = self._metadata.description
        return properties if comment is None else {**properties, COMMENT: comment}

    def versions(self, newest: int) -> Iterator[SourceVersion]:
        """See `ImportSource`. Leaves out old versions that the log can no longer reconstruct."""
        if newest < 1:
            raise InvalidInput(f"{newest} versions cannot be imported: give a number of at least 1")
        oldest_version = max(0, self._newest - newest + 1)
        log = self._log_for(oldest_version)
        base = log.base_of(oldest_version)
        first = oldest_version if base is None else max(oldest_version, base.version)
        replay = self._at(log, first)
        info = commit_info_of(log.read_commit_if_there(first))
        commits = list(log.read_commits(first + 1, self._newest))
        ids = ColumnIds()
        definitions = [self._past(replay, first, ids)]
        # All columns of all versions have to be known before the first file is named.
        later = _Replay(self.url, replay.protocol, replay.metadata)
        for version, actions in commits:
            definitions.append(self._past(later, version, ids) if later.define(actions) else definitions[-1])
        entries = DeltaEntries(self.url, self._open_url, dict(ids.names), definitions, self._zone, {})
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

    def live(self, known_files: Mapping[str, DataFile], columns: Schema | None) -> SourceVersion:
        """See `ImportSource`."""
        replay = self._at(self._log, self._newest)
        ids = ColumnIds(columns)
        definition = replay.definition(ids)
        if columns is not None and any(not columns.has_id(id) for id in definition.field_ids):
            # Older files may have a new column already, and only their footers say so.
            known_files = {}
        entries = DeltaEntries(
            self.url, self._open_url, dict(ids.names), [definition], self._zone, known_files
        )
        info = commit_info_of(self._log.read_commit_if_there(self._newest))
        return self._version(self._newest, info, definition, {}, entries.of(replay.live, definition))

    def _past(self, replay: _Replay, version: int, ids: ColumnIds) -> DeltaDefinition:
        """Return the definition of a version.

        Raises Unsupported, with the version, if only newer versions can be imported.
        """
        try:
            return replay.definition(ids)
        except Unsupported as error:
            raise Unsupported(
                f"version {version} of the source cannot come along ({error.message}). Newer ones can: import at most "
                f"{self._newest - version} versions"
            ) from None

    def _log_for(self, wanted: int) -> LogFiles:
        """Return a listing that contains a version, if such a listing exists."""
        log = self._log
        oldest = min((checkpoint.version for checkpoint in log.checkpoints), default=None)
        if log.complete or (oldest is not None and oldest <= wanted):
            return log
        return list_log(log.store, log.prefix, everything=True).up_to(self._newest)

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
        definition: DeltaDefinition,
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
