"""Audits over all logs of a warehouse: who changed it, when and how, with verified hash chains.

Each log's times increase, and a transaction has the same time in all of its logs. So merging by time keeps
every log's order, and shows a transaction's entries together. Logs are read a few versions ahead, never as a
whole.
"""

from __future__ import annotations

import datetime as dt
import heapq
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Literal, TypeAlias

import msgspec

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import NameTree
from lakelog.catalog.core.state import OPERATIONS, TABLE, details_of, operations_of, writer
from lakelog.catalog.looking.audit.audited_logs import AuditedLog, logs_below, logs_of_table
from lakelog.catalog.looking.audit.chain import (
    AuditedVersion,
    LogExtent,
    audited_versions,
    extent_of,
    goes_on_expired,
    without_expired,
)
from lakelog.catalog.names import Identifier, Name, identifier, table_identifier
from lakelog.catalog.times import Moment, last_us, moment_of, time_us
from lakelog.log import Commit, Json, NotFound, combined_ids, each_change
from lakelog.log.errors import InvalidInput, LakelogError, Unsupported
from lakelog.log.format import Tombstone
from lakelog.log.secrets import masked, masked_facts

BATCH_MAX = 64
AHEAD_MAX = 16 * 1024
"""The most entries of all logs together that are read ahead, if there are fewer logs than a quarter of it."""

COMMIT: Literal["commit"] = "commit"
EXPIRED: Literal["expired"] = "expired"
DAMAGE: Literal["damage"] = "damage"


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of a log, a range of expired versions, or damage that makes a log untrustworthy.

    `name` is the log's name now, or when it was dropped. It is None if the catalog has no name for the log.
    `operations` name the commit's changes, and `details` describe them. `transaction` is the commit id if the
    commit belongs to a transaction over several logs, `transaction_logs` of them. `base` is the version that
    the commit was prepared on. If it is below `version` - 1, the commit was rebased. An expired range goes
    from `first_version` to `version`. The `version` of damage is 0 if it is not about a single version.
    `note` describes an expired range or damage as text. Facts that a writer did not give are None.
    """

    what: Literal["commit", "expired", "damage"]
    committed_at: dt.datetime | None
    kind: str
    name: Identifier | None
    dropped: bool
    location: str
    log_id: str | None = None
    version: int
    first_version: int | None = None
    operations: tuple[str, ...] = ()
    details: dict[str, Json] = {}
    user: str | None = None
    engine: str | None = None
    client: str | None = None
    application: str | None = None
    host: str | None = None
    query: str | None = None
    statement: str | None = None
    commit_id: str | None = None
    transaction: str | None = None
    transaction_logs: int | None = None
    base: int | None = None
    hash: str | None = None
    note: str | None = None


def time_of(entry: AuditEntry) -> int | None:
    """Return when an entry was committed, in microseconds since 1970."""
    return None if entry.committed_at is None else time_us(entry.committed_at)


_Key: TypeAlias = tuple[int, str, str, int]
"""Orders entries by time, transactions together, and the versions of each log in their order."""

_Keyed: TypeAlias = tuple[_Key, AuditEntry]


def audit_entries(
    tree: NameTree,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    table: Name | None = None,
    namespace: Name | None = None,
    location: str | None = None,
    user: str | None = None,
    operation: str | None = None,
    newest_first: bool = True,
    verify: bool = True,
    whole_ranges: bool = False,
) -> Iterator[AuditEntry]:
    """Yield the events of a warehouse.

    Dropped tables and namespaces are included until they are purged.

    `since` and `until` are inclusive, and a date alone is the whole day. `table` and `namespace` (with all
    below) may be former names. `location` is the place of a table without a name. Give at most a single
    filter of these three. `user` and `operation` match exactly or as globs. Expired ranges and damage are
    reported regardless of these two. An expired range has the time of its newest version. If `until` cuts a
    range, the part before is reported. With `whole_ranges`, such a range is left out, so that `since` and
    `until` choose among the entries of an unlimited audit.

    All versions that are read are verified: all of them, or from `since` to `until`. Nothing that contradicts
    a hash is reported as a commit. An audit does not end at damage, so callers have to check for entries
    whose `what` is "damage". Raises InvalidInput, NoSuchTable or NoSuchNamespace, and NotFound if there is no
    log at `location`.
    """
    filters = _Wanted(since, until, user, operation, whole_ranges)
    if sum(given is not None for given in (table, namespace, location)) > 1:
        raise InvalidInput("an audit is of a table, of a namespace or of a place: give only one of them")
    if tree.logs.is_a_cut:
        raise Unsupported(
            "an audit covers all of the history: use the catalog itself, without as_of or a transaction"
        )
    if location is not None:
        logs = [AuditedLog(tree.logs.location(location), TABLE)]
        if extent_of(tree.logs.unread(logs[0].location).log).head == 0:
            raise NotFound(f"there is no log at {location}: check the path")
    elif table is not None:
        logs = logs_of_table(tree, table_identifier(table))
    else:
        logs = logs_below(tree, identifier(namespace) if namespace is not None else ())
    batch = max(4, min(BATCH_MAX, AHEAD_MAX // max(1, len(logs))))
    streams = [_stream(tree, log, filters, newest_first, verify, batch) for log in logs]
    return _merged(tree, streams, newest_first)


def _merged(tree: NameTree, streams: list[Iterator[_Keyed]], newest_first: bool) -> Iterator[AuditEntry]:
    # heapq takes the first entry of each stream in turn, so the streams read it before that, in parallel.
    firsts = tree.logs.in_parallel(lambda stream: next(stream, None), streams)
    started_streams = [
        chain([first], stream) for first, stream in zip(firsts, streams, strict=True) if first is not None
    ]
    for _, entry in heapq.merge(*started_streams, key=lambda keyed: keyed[0], reverse=newest_first):
        yield entry


class _Wanted:
    """The filters of an audit."""

    def __init__(
        self,
        since: Moment | None,
        until: Moment | None,
        user: str | None,
        operation: str | None,
        whole_ranges: bool,
    ) -> None:
        self.since_us = None if since is None else time_us(since)
        self.until_us = None if until is None else last_us(until)
        self.user = user
        self.operation = operation
        self.whole_only = until is not None and whole_ranges
        if self.since_us is not None and self.until_us is not None and self.since_us > self.until_us:
            raise InvalidInput(
                f"the range from {since} to {until} is empty: since must not be later than until"
            )
        if operation is not None and not any(fnmatchcase(known, operation) for known in OPERATIONS):
            raise InvalidInput(
                f"there is no operation {operation!r}: there are {', '.join(sorted(OPERATIONS))}; "
                "* and ? stand for any characters and for one"
            )

    def wants(self, entry: AuditEntry) -> bool:
        if self.user is not None and not fnmatchcase(entry.user or "", self.user):
            return False
        return self.operation is None or any(fnmatchcase(done, self.operation) for done in entry.operations)


def _stream(tree: NameTree, log: AuditedLog, *how: Any) -> Iterator[_Keyed]:
    """Yield the entries of a log.

    If a log outside of the warehouse cannot be read, the audit of other logs goes on. Any client that may
    write to a namespace can make a name lead to such a log.
    """
    try:
        yield from _Stream(tree, log, *how).entries()
    except LakelogError as error:
        if not is_elsewhere(log.location):
            raise
        key = (sys.maxsize if how[1] else 0, "", log.location, 0)
        yield key, _entry_of(log, log.location, None, what=DAMAGE, version=0, note=str(error))


class _Stream:
    """The entries of a log, in order, each with the key for merging."""

    def __init__(
        self, tree: NameTree, log: AuditedLog, wanted: _Wanted, newest_first: bool, verify: bool, batch: int
    ) -> None:
        self.read = tree.logs.unread(log.location).log
        self.log = log
        self.wanted = wanted
        self.newest_first = newest_first
        self.verify = verify
        self.batch = batch
        end = sys.maxsize if newest_first else 0
        self.key: _Key = (end, "", log.location, end)

    def entries(self) -> Iterator[_Keyed]:
        extent = extent_of(self.read)
        newest_tombstone: Tombstone | None = None
        yield from self._of_the_whole(extent)
        versions = audited_versions(
            self.read,
            extent,
            since_us=self.wanted.since_us,
            until_us=self.wanted.until_us,
            newest_first=self.newest_first,
            verify=self.verify,
            batch=self.batch,
        )
        for version in without_expired(self.read, versions, extent, self.newest_first):
            if isinstance(version.entry, Tombstone):
                # The oldest versions expire first, so the newest expired version stands for all.
                if self.newest_first and newest_tombstone is None:
                    yield from self._of_expired(version.entry, extent)
                newest_tombstone = version.entry
                continue
            if not self.newest_first and newest_tombstone is not None:
                yield from self._of_expired(newest_tombstone, extent)
            newest_tombstone = None
            yield from self._of(version)
        if not self.newest_first and newest_tombstone is not None:
            yield from self._of_expired(newest_tombstone, extent)

    def _of_the_whole(self, extent: LogExtent) -> Iterator[_Keyed]:
        problems = list(extent.problems)
        if extent.head == 0:
            problems.append(
                self.log.problem or f"the log at {self.read.location} is missing, though the catalog names it"
            )
        elif self.log.problem is not None:
            problems.append(f"{self.log.problem}; what is below it comes from the commits that can be read")
        for problem in problems:
            yield self.key, self._entry(None, what=DAMAGE, version=0, note=problem)

    def _of(self, version: AuditedVersion) -> Iterator[_Keyed]:
        if version.problem is not None:
            self.key = (*self.key[:3], version.version)
            time_us = self.key[0] if 0 < self.key[0] < sys.maxsize else None
            yield (
                self.key,
                self._entry(
                    None, what=DAMAGE, time_us=time_us, version=version.version, note=version.problem
                ),
            )
            return
        commit = version.entry
        assert isinstance(commit, Commit)
        self.key = (commit.time_us, commit.commit_id, self.log.location, commit.version)
        for change in each_change(commit, newest_first=self.newest_first) if self._concerns(commit) else ():
            if self._is_relevant(change):
                is_combined = change.commit_id in combined_ids(commit)
                entry = self._of_commit(change, commit.writer if is_combined else None)
                if self.wanted.wants(entry):
                    yield self.key, entry

    def _concerns(self, entry: Commit | Tombstone) -> bool:
        return self.log.only is None or entry.log_id in self.log.only

    def _is_relevant(self, commit: Commit) -> bool:
        return self.log.about is None or any(event.get("id") in self.log.about for event in commit.events)

    def _of_commit(self, commit: Commit, combined_by: Mapping[str, Json] | None = None) -> AuditEntry:
        """`combined_by` are the claimed facts of the writer who committed the author's proposal."""
        writer_facts = commit.writer
        combined_details = {} if combined_by is None else {"combined_by": _who(combined_by)}
        return self._entry(
            commit.log_id,
            what=COMMIT,
            time_us=commit.time_us,
            version=commit.version,
            operations=operations_of(commit),
            details=masked_facts({**details_of(commit), **combined_details}),
            user=_text(writer_facts.get(writer.USER)),
            engine=_text(writer_facts.get(writer.ENGINE)),
            client=_text(writer_facts.get(writer.CLIENT)),
            application=_text(writer_facts.get(writer.APPLICATION)),
            host=_text(writer_facts.get(writer.HOST)),
            query=_text(writer_facts.get(writer.QUERY)),
            statement=_text(writer_facts.get(writer.STATEMENT)),
            commit_id=commit.commit_id,
            transaction=commit.commit_id if commit.intent is not None else None,
            transaction_logs=commit.intent.count if commit.intent is not None else None,
            base=commit.base,
            hash=commit.hash,
        )

    def _of_expired(self, newest: Tombstone, extent: LogExtent) -> Iterator[_Keyed]:
        if self.wanted.whole_only and goes_on_expired(self.read, newest.version, extent):
            return
        if self._concerns(newest):
            last = newest.version
            self.key = (newest.time_us, newest.commit_id, self.log.location, last)
            yield (
                self.key,
                self._entry(
                    newest.log_id,
                    what=EXPIRED,
                    time_us=newest.time_us,
                    version=last,
                    first_version=1,
                    note=f"versions 1-{last} expired" if last > 1 else "version 1 expired",
                ),
            )

    def _entry(self, log_id: str | None, **facts: Any) -> AuditEntry:
        return _entry_of(self.log, self.read.location, log_id, **facts)


def _entry_of(
    log: AuditedLog, url: str, log_id: str | None, *, time_us: int | None = None, **facts: Any
) -> AuditEntry:
    name = log.names.get(log_id or "") or (next(iter(log.names.values())) if len(log.names) == 1 else None)
    return AuditEntry(
        committed_at=None if time_us is None else moment_of(time_us),
        kind=log.kind,
        name=None if name is None else name.identifier,
        dropped=name is not None and name.dropped,
        location=url,
        log_id=log_id,
        **facts,
    )


def _who(said: Mapping[str, Json]) -> dict[str, str]:
    facts = ((key, _text(said.get(key))) for key in (writer.USER, writer.HOST, writer.CLIENT))
    return {key: text for key, text in facts if text is not None}


def _text(fact: Json) -> str | None:
    """Return a fact without secrets. Another client may have written it with secrets."""
    return None if fact is None else masked(str(fact))
