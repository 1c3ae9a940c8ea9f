"""The expected state of a log: its commits in order, each with exactly the effect of its request.

A commit that no journal knows was made by Spark, whose statements cannot be given ids: its rows show which it was.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.processes import moves
from tests.processes.chains import Chain
from tests.processes.journal import Asked

from lakelog.catalog import Catalog, Table
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.state.decoded_events import namespace_events, table_events
from lakelog.catalog.core.state.events import (
    EntryLinked,
    EntryRenamed,
    EntryUnlinked,
    FilesChanged,
    NamespaceCreated,
    RowsAppended,
    TableAltered,
    TableCreated,
    TableReplaced,
)
from lakelog.log import Commit
from lakelog.log.errors import NotFound
from lakelog.log.format import Tombstone, id_digest

OLD_VERSIONS = 1
Rows = dict[int, tuple[str, str, int]]
"""By id: the key of the request that wrote the row, its owner, its value."""


@dataclass
class Checked:
    """What the models found: `happened` are the requests, by key, that had an effect in any log."""

    wrong: list[str] = field(default_factory=list)
    happened: dict[str, list[str]] = field(default_factory=dict)
    moves: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """When requests that write cells took effect, and in which log."""
    rows: int = 0
    commits: int = 0
    files: int = 0

    def happens(self, asked: Asked, where: str) -> None:
        self.happened.setdefault(asked.key, []).append(where)


@dataclass
class Linked:
    """What all namespaces say: what each name leads to now, and all ids that ever had one."""

    now: dict[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)
    ever: set[str] = field(default_factory=set)


class Requests:
    """All requests, by what shows in a log that a commit is theirs: the commit's id, or a mark that it bears."""

    def __init__(self, asked: Collection[Asked]) -> None:
        self.by_key = {a.key: a for a in asked}
        self._by_commit = {a.request["commit"]: a for a in asked if "commit" in a.request}
        self._by_digest = {id_digest(commit_id): a for commit_id, a in self._by_commit.items()}
        self._by_mark = {a.request["mark"]: a for a in asked if "mark" in a.request}

    def all_of(self, effect: Commit | Tombstone) -> list[Asked]:
        """The requests of what is expired, of which there may be several in one version."""
        if isinstance(effect, Tombstone) and effect.applied:
            return [self._by_digest[text] for text in effect.applied if text in self._by_digest]
        request = self.of(effect)
        return [] if request is None else [request]

    def of(self, commit: Commit | Tombstone, *marks: str) -> Asked | None:
        request = self._by_commit.get(commit.commit_id)
        return request or next((self._by_mark[mark] for mark in marks if mark in self._by_mark), None)


def check_namespaces(chains: Mapping[str, Chain], requests: Requests, checked: Checked) -> Linked:
    """Follow every namespace's log, and note which creations, renames and drops happened in it."""
    linked = Linked()
    for prefix, chain in chains.items():
        if chain.is_table:
            continue
        note_what_is_expired(chain, requests, checked)
        names: dict[tuple[str, str], tuple[str, str]] = {}
        for commit in chain.commits:
            checked.commits += 1
            where = f"version {commit.version} of {prefix or 'the root'}"
            first = False
            for event in namespace_events(commit):
                match event:
                    case NamespaceCreated():
                        first = True
                    case EntryLinked(space=space, name=name):
                        if (space, name) in names:
                            checked.wrong.append(f"{where} links {name}, which is there")
                        names[space, name] = event.id, event.location
                        linked.ever.add(event.id)
                    case EntryUnlinked(space=space, name=name) | EntryRenamed(space=space, name=name):
                        entry = names.pop((space, name), None)
                        if entry is None or entry[0] != event.id:
                            checked.wrong.append(f"{where} takes away {name}, which leads to {entry}")
                        if isinstance(event, EntryRenamed) and entry is not None:
                            names[space, event.new_name] = entry
                    case _:
                        pass
            asked_request = requests.of(commit, *namespace_marks(commit))
            # A log's own first commit bears the id of the request that makes it; only the link makes it exist.
            if asked_request is not None and not first:
                checked.happens(asked_request, where)
        if not chain.sealed:
            linked.now |= {(prefix, *name): entry for name, entry in names.items()}
    return linked


def note_what_is_expired(chain: Chain, requests: Requests, checked: Checked) -> None:
    """A tombstone says whose commit it was, and nothing more."""
    note(chain, (effect for effect in chain.effects if isinstance(effect, Tombstone)), requests, checked)


def note(chain: Chain, effects: Iterable[Commit | Tombstone], requests: Requests, checked: Checked) -> None:
    for effect in effects:
        if effect.version > 1 and not effect.reopens:
            for request in requests.all_of(effect):
                checked.happens(request, f"version {effect.version} of {chain.prefix or 'the root'}")
                if request.request["op"] in ("move", "fill"):
                    checked.moves.setdefault(request.key, []).append((effect.time_us, effect.log_id))


def namespace_marks(commit: Commit) -> Iterator[str]:
    for event in namespace_events(commit):
        match event:
            case EntryLinked():
                yield f"link {event.name}"
            case EntryUnlinked():
                yield f"unlink {event.name}"
            case EntryRenamed():
                yield f"rename {event.new_name}"
            case _:
                pass


class TableModel:
    """One table's log, followed commit by commit."""

    def __init__(self, catalog: Catalog, chain: Chain, rng: random.Random, checked: Checked) -> None:
        self.chain = chain
        self.checked = checked
        self._catalog = catalog
        self._tracked = catalog._logs.table(chain.prefix)
        self._rng = rng
        self.rows: Rows = {}
        self.properties: dict[str, str] = {}
        self.files: dict[str, int] = {}

    def follow(self, requests: Requests) -> None:
        note_what_is_expired(self.chain, requests, self.checked)
        commits = self._begin(requests)
        versions = [commit.version for commit in commits]
        look_at = {*self._rng.sample(versions, min(OLD_VERSIONS, len(versions))), *versions[-1:]}
        for number, commit in enumerate(commits):
            self.checked.commits += 1
            self._follow(commit, requests)
            if versions[number + 1 : number + 2] == [commit.version]:
                continue  # a reader sees all changes of a version
            if commit.version in look_at and not commit.seals:
                self._compare(self._table(commit.version))
        if self.chain.sealed:
            return  # its files may be purged at any time
        for path, size in self.files.items():
            self._check_file(path, size)
        self._check_all_rows(requests)
        self.checked.files += len(self.files)
        self.checked.rows += len(self.rows)

    def _begin(self, requests: Requests) -> list[Commit]:
        """Begin with what the first version shows that was not expired, and return the commits after it."""
        tombstones = [entry.version for entry in self.chain.entries if isinstance(entry, Tombstone)]
        if not tombstones and not self.chain.purged:
            return self.chain.commits
        if self.chain.sealed:
            note(self.chain, self.chain.commits, requests, self.checked)
            return []
        for number, commit in enumerate(self.chain.commits):
            if commit.version < tombstones[-1]:
                continue
            try:
                table = self._table(commit.version)
            except NotFound:
                continue  # a cleaner died before it had overwritten all that it expired
            while [commit.version for commit in self.chain.commits[number + 1 : number + 2]] == [
                commit.version
            ]:
                number += 1  # with all that share the version
            note(self.chain, self.chain.commits[: number + 1], requests, self.checked)
            self.rows, self.files = rows_of(table), self._listed(commit.version)
            self.properties = dict(table.properties)
            return self.chain.commits[number + 1 :]
        return []

    def _check_all_rows(self, requests: Requests) -> None:
        """If rows were only ever added, all of them are there, expired versions or not."""
        where = f" of {self.chain.prefix}"
        keys = [
            key for key, places in self.checked.happened.items() if any(p.endswith(where) for p in places)
        ]
        added: Rows = {}
        for request in (requests.by_key[key] for key in keys):
            if request.request["op"] in ("append", "publish"):
                added = apply(added, request, self.chain.log_id)
            elif request.request["op"] not in ("rewrite", "alter", "rename"):
                return
        if added.keys() - self.rows.keys():
            lost_rows = sorted(added.keys() - self.rows.keys())
            self.checked.wrong.append(f"{self.chain.prefix} has lost the rows {lost_rows[:5]}")

    def where(self, commit: Commit) -> str:
        return f"version {commit.version} of {self.chain.prefix}"

    def _follow(self, commit: Commit, requests: Requests) -> None:
        events = table_events(commit)
        altered_values = [value for e in events if isinstance(e, TableAltered) for value in e.set.values()]
        request = requests.of(commit, *(f"set {value}" for value in altered_values))
        first = False
        for event in events:
            match event:
                case TableCreated() | TableReplaced():
                    first = isinstance(event, TableCreated)
                    self.rows, self.files = {}, {}
                    self.properties = dict(event.properties)
                case TableAltered():
                    self.properties = {k: v for k, v in self.properties.items() if k not in event.removed}
                    self.properties |= event.set
                case RowsAppended() if request is not None:
                    self.rows = apply(self.rows, request, commit.log_id)
                case FilesChanged():
                    self._follow_files(commit, event, request, requests)
                case _:
                    pass
        if request is not None:
            if request.request["op"] == "alter":
                said = {request.request["property"]: request.request["value"]}
                if not said.items() <= self.properties.items():
                    self.checked.wrong.append(f"{self.where(commit)} does not set {said}")
            if not first:
                self.checked.happens(request, self.where(commit))
            if request.request["op"] in ("move", "fill"):
                self.checked.moves.setdefault(request.key, []).append((commit.time_us, commit.log_id))

    def _follow_files(
        self, commit: Commit, event: FilesChanged, asked: Asked | None, requests: Requests
    ) -> None:
        for removed_file in event.removed:
            if self.files.pop(removed_file.path, None) is None:
                self.checked.wrong.append(
                    f"{self.where(commit)} removes {removed_file.path}, which was not there"
                )
        for added_file in event.added:
            if added_file.path in self.files:
                self.checked.wrong.append(f"{self.where(commit)} adds {added_file.path}, which was there")
            self.files[added_file.path] = added_file.size_bytes
        if event.added_sidecar is not None or event.removed_sidecar is not None:
            self.files = self._listed(commit.version)
        if event.of_changes:
            # The rows of the changes before it in its version, and no others.
            self._compare_rows(rows_of(self._table(commit.version)), self.where(commit))
        elif asked is not None:
            self.rows = apply(self.rows, asked, commit.log_id)
        elif event.added_files:
            self._known_by_rows(commit, event, requests)
        elif event.operation == "truncate":
            self.rows = {}

    def _known_by_rows(self, commit: Commit, event: FilesChanged, requests: Requests) -> None:
        rows_after = rows_of(self._table(commit.version))
        added_rows = {id: row for id, row in rows_after.items() if self.rows.get(id) != row}
        keys = {op for op, _, _ in added_rows.values()}
        asked_request = requests.by_key.get(next(iter(keys))) if len(keys) == 1 else None
        if asked_request is None:
            self.checked.wrong.append(f"{self.where(commit)} is of no known request: it adds rows of {keys}")
            self.rows = rows_after
            return
        operations = {"create": "append", "publish": "append"}
        if event.operation != operations.get(asked_request.request["op"], asked_request.request["op"]):
            self.checked.wrong.append(
                f"{self.where(commit)} is an {event.operation}, for {asked_request.request}"
            )
        self.rows = apply(self.rows, asked_request, commit.log_id)
        self._compare_rows(rows_after, self.where(commit))
        if asked_request.request["op"] not in operations:
            self.checked.happens(asked_request, self.where(commit))

    def _table(self, version: int) -> Table:
        view = self._tracked.log.view_at(version)
        return Table(TableHead.at_place(self._catalog._logs, self._tracked, view))

    def _listed(self, version: int) -> dict[str, int]:
        plan = self._table(version).plan()
        return dict(zip(plan["path"].to_pylist(), plan["size"].to_pylist(), strict=True))

    def _compare(self, table: Table) -> None:
        where = f"version {table.version} of {self.chain.prefix}"
        found_rows = rows_of(table)
        if len(found_rows) < table.row_count:
            self.checked.wrong.append(
                f"{where} shows {len(found_rows)} rows, but has {table.row_count}: some twice"
            )
        self._compare_rows(found_rows, where)
        if dict(table.properties) != self.properties:
            self.checked.wrong.append(f"{where} has the properties {table.properties}, not {self.properties}")
        if self._listed(table.version) != self.files:
            self.checked.wrong.append(f"{where} has other files than its commits say")

    def _compare_rows(self, found: Rows, where: str) -> None:
        if found != self.rows:
            missing, extra = self.rows.keys() - found.keys(), found.keys() - self.rows.keys()
            self.checked.wrong.append(
                f"{where} shows other rows than its requests made: it lacks {sorted(missing)[:5]} and has "
                f"{sorted(extra)[:5]} more"
            )

    def _check_file(self, path: str, size: int) -> None:
        key = f"{self._tracked.prefix}/{path}"
        with self._tracked.store.open_input(key) as opened_input:
            number = opened_input.seek(0, 2)
        if number != size:
            self.checked.wrong.append(f"{key} has {number} bytes, not {size}")


def rows_of(table: Table) -> Rows:
    return {row["id"]: (row["op"], row["owner"], row["value"]) for row in table.to_arrow().to_pylist()}


def apply(rows: Rows, asked: Asked, log_id: str) -> Rows:
    """Return the rows of the table `log_id` after a request."""
    request = asked.request

    def added(first: int, count: int) -> Rows:
        return {id: (asked.key, request["owner"], 0) for id in range(first, first + count)}

    match request["op"]:
        case "append":
            return rows | added(request["first"], request["count"])
        case "overwrite":
            other_rows = {id: row for id, row in rows.items() if row[1] != request["owner"]}
            return other_rows | added(request["first"], request["count"])
        case "create":
            return added(request.get("first", 0), request.get("count", 0))
        case "truncate":
            return {}
        case "rewrite":
            return rows
        case "fill":
            return {id: (asked.key, owner, value) for id, owner, value in request["cells"]}
        case "publish":
            for log, first, count in request["rows"]:
                rows = rows | added(first, count) if log == log_id else rows
            return rows
        case "move":
            ids = [(id, value) for log, id, value in request["write"] if log == log_id]
            return rows | {id: (asked.key, moves.owner(id), value) for id, value in ids}
        case op:
            raise AssertionError(op)


def check_moves(checked: Checked, asked: Mapping[str, Asked]) -> int:
    """Put all transactions in the order of their times: each must have read what those before it wrote. Count them."""
    in_order: list[tuple[int, str]] = []
    for key, parts in checked.moves.items():
        request = asked[key].request
        if request["op"] == "move":
            wanted_logs = {log for log, _, _ in request["write"]}
            if {log for _, log in parts} != wanted_logs or len(parts) != len(wanted_logs):
                checked.wrong.append(f"{key} wrote to {parts} instead of {sorted(wanted_logs)}")
        if len({time_us for time_us, _ in parts}) != 1:
            checked.wrong.append(f"{key} has several times: {parts}")
        in_order.append((parts[0][0], key))
    cells: dict[tuple[str, int], int] = {}
    for _, key in sorted(in_order):
        request = asked[key].request
        if request["op"] == "fill":
            [(_, log)] = checked.moves[key]
            cells |= {(log, id): value for id, _, value in request["cells"]}
            continue
        for log, id, value in request["read"]:
            if cells.get((log, id)) != value:
                checked.wrong.append(
                    f"{key} read {value} in cell {id} of {log}, but {cells.get((log, id))} was there"
                )
        cells |= {(log, id): value for log, id, value in request["write"]}
    return len(in_order)
