"""Commits of Iceberg's clients to tables by name: a table, or several in a transaction, all or none.

A commit is decided on the export of each table's newest version. If another commit was first, all is decided again on
the newer version. So if a client hears of a conflict, its requirements and the present table contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.catalog import Catalog
from lakelog.catalog.core.ddl import commit_stage
from lakelog.catalog.core.logs import writing_as
from lakelog.catalog.core.state import ENGINE, bounded_facts
from lakelog.catalog.engine.exports import iceberg_metadata, metadata_to_commit_on
from lakelog.catalog.errors import CommitConflict, NoSuchTable, TableExists
from lakelog.catalog.formats.iceberg import decoded_document, encode
from lakelog.catalog.formats.iceberg_commits import (
    ClientCommit,
    VersionMoved,
    apply_planned,
    as_protocol,
    check_same_request,
    creation_updates,
    fact_of_creation,
    fill_created,
    is_create,
    new_table,
    planned,
    staged_document,
    was_committed,
)
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.table import Table
from lakelog.catalog.transaction import Transaction
from lakelog.log.errors import CommitUnknown, InvalidInput

ATTEMPTS_MAX = 20
"""How often a commit is decided anew because others were first."""
_ANSWERS_MAX = 3
"""How often the outcome of a commit is looked up if the store gave no answer."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RepeatedCommit:
    """A request that its client may send again, so that its effect may be in the logs already."""

    commit_id: str
    """The id of its commit, whichever server makes it."""
    check_new: Callable[[], object]
    """Raises an error if the request was done before. It is called after the logs were read."""


def commit_for_clients(
    catalog: Catalog,
    commits: Sequence[tuple[Identifier, ClientCommit]],
    client: str | None = None,
    repeat: RepeatedCommit | None = None,
) -> None:
    """Commit the changes of a client of Iceberg to several tables, all or none. `client` is its name for the log.

    A commit that was made before is not made again if it adds snapshots, and never with `repeat`. Raises CommitConflict
    if a requirement does not hold, TableExists or NoSuchTable, and InvalidInput or Unsupported if a part cannot be
    kept. Raises CommitUnknown if the outcome is not known.
    """
    names = [name for name, _ in commits]
    if not names or len(set(names)) < len(names):
        raise InvalidInput("a commit names each of its tables once, and at least one")
    failure: VersionMoved | None = None
    for _ in range(ATTEMPTS_MAX):
        try:
            return _commit(catalog, commits, client, repeat)
        except VersionMoved as error:
            failure = error
    raise CommitConflict(
        f"{', '.join(map(quoted, names))} changed {ATTEMPTS_MAX} times while a commit was decided ({failure}). Nothing "
        "was changed: commit again",
        version=0,
    )


def create_for_client(
    catalog: Catalog,
    name: Identifier,
    request: Json,
    client: str | None = None,
    repeat: RepeatedCommit | None = None,
) -> None:
    """Create an empty table as a client of Iceberg requests it, in the JSON of the REST protocol.

    Raises TableExists, NoSuchNamespace, and InvalidInput or Unsupported if a part cannot be kept. `repeat` is as for
    `commit_for_clients`.
    """
    updates = _updates_of(request)
    with _begun(catalog, repeat) as transaction:
        _create(transaction, name, updates, _location_of(request), client)
        if repeat is not None:
            repeat.check_new()


def stage_for_client(catalog: Catalog, name: Identifier, request: Json) -> bytes:
    """Return Iceberg's metadata of a table that a client stages. Nothing is stored.

    Raises as `create_for_client`.
    """
    stage, _ = new_table(catalog._tree, name, _updates_of(request), _location_of(request), is_resumed=False)
    return encode(staged_document(stage))


def _location_of(request: Json) -> str | None:
    location = request.get("location")
    if location is not None and not isinstance(location, str):
        raise InvalidInput(f"the location {location!r} is no text")
    return location


def _updates_of(request: Json) -> list[Json]:
    with as_protocol("the request"):
        return creation_updates(request)


def _commit(
    catalog: Catalog,
    commits: Sequence[tuple[Identifier, ClientCommit]],
    client: str | None,
    repeat: RepeatedCommit | None,
) -> None:
    tables = _tables_to_change(catalog, commits)
    if repeat is not None:
        repeat.check_new()
    if tables is None:
        return  # the client, or a program between, has sent the request again
    plans = {}
    for name, commit in commits:
        if name in tables:
            table, document, version = tables[name]
            plans[name] = planned(commit, document, quoted(name), version, table.id)
    transaction = _begun(catalog, repeat)
    has_changes = False
    try:
        for name, commit in commits:
            if name in plans:
                with writing_as({**_facts(client), **plans[name].fact}):
                    has_changes |= apply_planned(transaction.load_table(name).table_head, plans[name])
            else:
                _create(transaction, name, commit.updates, _place_in(commit), client, commit)
                has_changes = True
        if repeat is not None and len(plans) < len(commits):
            repeat.check_new()  # namespaces have changed since, unlike tables
        if has_changes:
            _settle(transaction)
    finally:
        if transaction.is_open and not transaction._is_unknown:
            transaction.rollback()


def _begun(catalog: Catalog, repeat: RepeatedCommit | None) -> Transaction:
    """Begin a transaction. With `repeat`, its commit has that id."""
    transaction = catalog.begin()
    if repeat is not None:
        transaction.commit_id = repeat.commit_id
    return transaction


def _tables_to_change(
    catalog: Catalog, commits: Sequence[tuple[Identifier, ClientCommit]]
) -> dict[Identifier, tuple[Table, Json, int]] | None:
    """Return the existing tables of a request, each with the metadata and version to decide on.

    Returns None if the request was committed before. A snapshot or creation of every table shows it. Raises
    CommitConflict if some tables say so and others deny it. Then it is another request, of which a part would be lost.
    """
    tables: dict[Identifier, tuple[Table, Json, int]] = {}
    committed_names: list[Identifier] = []
    new_names: list[Identifier] = []
    failure: NoSuchTable | None = None
    for name, commit in commits:
        if is_create(commit.requirements):
            (committed_names if _is_created(catalog, name, commit) else new_names).append(name)
            continue
        try:
            table = catalog.load_table(name)
        except NoSuchTable as error:
            failure = failure or error
            continue
        tables[name] = table, *metadata_to_commit_on(table)
        if commit.snapshot_ids:
            is_committed = was_committed(table.table_head, commit, tables[name][1])
            (committed_names if is_committed else new_names).append(name)
    if committed_names and new_names:
        raise CommitConflict(
            f"the part of the request for {quoted(committed_names[0])} was committed before, and the part for "
            f"{quoted(new_names[0])} was not. Nothing was changed now: make a new commit of what is missing",
            version=0,
        )
    if committed_names:
        return None
    if failure is not None:
        raise failure
    return tables


def _place_in(commit: ClientCommit) -> str | None:
    """Return the place of the table in a commit that creates it. None if the client names none."""
    places = [update.get("location") for update in commit.updates if update.get("action") == "set-location"]
    if any(not isinstance(place, str) for place in places):
        raise InvalidInput("the update set-location has no location: give a text")
    return places[-1] if places else None


def _is_created(catalog: Catalog, name: Identifier, commit: ClientCommit) -> bool:
    """Return whether a creation was committed before, and sent again. Raises TableExists for another table.

    Raises CommitUnknown if the table was created by a request with other updates.
    """
    try:
        table = catalog.load_table(name)
    except NoSuchTable:
        return False
    document = decoded_document(iceberg_metadata(table)[1])
    uuids = [update.get("uuid") for update in commit.updates if update.get("action") == "assign-uuid"]
    if uuids and uuids[-1] == document["table-uuid"]:
        check_same_request(table.table_head, commit, 1)
        return True
    raise TableExists(f"there is a table {quoted(name)} already: load it, or choose another name")


def _create(
    transaction: Transaction,
    name: Identifier,
    updates: Sequence[Json],
    location: str | None,
    client: str | None,
    commit: ClientCommit | None = None,
) -> None:
    """Create a table. `commit` is the client's if it has staged the table."""
    stage, target = new_table(transaction._tree, name, updates, location, is_resumed=commit is not None)
    with writing_as({**_facts(client), **fact_of_creation(target, commit)}):
        commit_stage(transaction._tree, stage, ())
        fill_created(transaction.load_table(name).table_head, target)


def _facts(client: str | None) -> Json:
    return bounded_facts({ENGINE: client})


def _settle(transaction: Transaction) -> None:
    """Commit the transaction. If the store gave no answer, look the outcome up a few times."""
    for attempt in range(_ANSWERS_MAX):
        try:
            return transaction.commit()
        except CommitUnknown:
            if attempt == _ANSWERS_MAX - 1:
                raise
