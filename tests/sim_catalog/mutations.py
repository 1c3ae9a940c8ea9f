"""The catalog with one protection removed: each must make some seed fail, or the checkers are asleep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.sim.mutations import removing

from lakelog.catalog import transaction
from lakelog.catalog.core.ddl import definitions, drop, namespaces, restore, staging
from lakelog.catalog.core.logs import (
    clocks,
    commits,
    consistent_cut,
    name_tree,
    table_head,
    transaction_log,
    transaction_steps,
)
from lakelog.catalog.core.logs.cache import JointLogChange
from lakelog.catalog.core.logs.commits import Token
from lakelog.catalog.core.logs.places import place_in
from lakelog.catalog.core.schema.identity import ValuesTaken, next_values
from lakelog.catalog.core.state import NamespaceEntry, table_state
from lakelog.catalog.core.state.events import (
    EntryUnlinked,
    NamespaceDropped,
    RolledBack,
    TableReplaced,
    encode,
)
from lakelog.catalog.core.writes import file_changes, identity_rewrite
from lakelog.log import Draft, NotFound

CATALOG_MUTATIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {}
removes = removing(CATALOG_MUTATIONS)


@removes(consistent_cut.ConsistentCut, "check")
def a_cut_is_not_checked_again(real: Any, self: Any) -> None:
    return None


@removes(clocks.WarehouseClocks, "saw")
def clocks_do_not_follow_what_was_read(real: Any, self: Any, time_us: int) -> None:
    return None


@removes(clocks.WarehouseClocks, "now_us")
def ages_are_judged_by_the_hosts_clock(real: Any, self: Any, location: str = "") -> int:
    own_us: int = self.host_us()
    return own_us


@removes(drop, "commit_changes")
def a_drop_seals_and_unlinks_by_itself(real: Any, logs: Any, changes: Sequence[Any], token: Any) -> None:
    if logs.is_a_cut:
        return real(logs, changes, token)
    for change in reversed(changes):
        real(logs, [change], token)
    return None


@removes(restore, "_dropped")
def an_undrop_ignores_the_id(real: Any, tree: Any, identifier: Any, space: str, id: str | None) -> Any:
    return real(tree, identifier, space, None)


def _judged_once(change: JointLogChange[Any]) -> JointLogChange[Any]:
    """Return a change that is decided on the first state that it meets, and goes on with that on any other."""
    drafts: list[Draft] = []

    def decide(view: Any, passed: Any) -> Draft:
        if not drafts:
            drafts.append(change.decide(view, passed))
        return drafts[0]

    return JointLogChange(change.tracked, change.view, decide, change.base)


@removes(staging, "commit_in")
def a_link_does_not_look_at_the_name_again(
    real: Any, found: Any, namespace: Any, decide: Any, token: Any
) -> Any:
    return real(
        found, namespace, _judged_once(JointLogChange(found.tracked, found.view, decide)).decide, token
    )


@removes(drop, "_drop_name_alone")
def a_name_is_dropped_by_what_was_read_of_its_table(
    real: Any, tree: Any, identifier: Any, unlinking: Any, tracked: Any, entry: Any, token: Any
) -> None:
    commits.commit_changes(tree.logs, [unlinking], token)


@removes(namespaces, "_created")
def a_namespace_takes_the_place_of_its_name_from_another_one(
    real: Any, tree: Any, parent: Any, name: str, properties: Any, token: Any
) -> Any:
    made = real(tree, parent, name, properties, token)
    likely = vars(namespaces)["likely_id"](tree.logs.url(parent.tracked.location), name)
    return NamespaceEntry(kind=made.kind, id=likely, location=place_in(parent.tracked.location, likely))


@removes(definitions, "commit_in")
def a_view_does_not_look_at_the_name_again(
    real: Any, found: Any, namespace: Any, decide: Any, token: Any
) -> Any:
    return real(
        found, namespace, _judged_once(JointLogChange(found.tracked, found.view, decide)).decide, token
    )


@removes(definitions, "check_free")
def a_view_takes_a_name_that_is_taken(real: Any, state: Any, kind: str, identifier: Any) -> None:
    return None


@removes(table_head.TableHead, "check_name")
def a_write_by_name_does_not_look_at_the_name_again(real: Any, self: Any, view: Any) -> None:
    return None


@removes(restore, "_linking")
def a_restore_does_not_look_at_the_name_again(real: Any, *args: Any) -> Any:
    return [_judged_once(change) for change in real(*args)]


@removes(Token, "base")
def retried_from_a_fresh_base(real: Any, self: Any, tracked: Any) -> int:
    known_version: int = tracked.known.version if tracked.known is not None else real(self, tracked)
    return known_version


@removes(transaction.Transaction, "_validate")
def what_was_read_is_not_validated(real: Any, self: Any, log: Any, now: Any) -> None:
    return None


@removes(transaction.Transaction, "_validate_read")
def what_was_only_read_is_not_validated(real: Any, self: Any, read: Any) -> None:
    return None


@contextmanager
def _decided_once() -> Iterator[None]:
    real = transaction_log.TransactionLog.decide_all

    def decide_all(self: Any, view: Any, passed: Any) -> Any:
        if not hasattr(self, "drafted"):
            self.drafted = real(self, view, passed)
        return self.drafted

    with patch.object(transaction_log.TransactionLog, "decide_all", decide_all):
        yield


CATALOG_MUTATIONS["the-steps-of-a-transaction-are-decided-once"] = _decided_once


@removes(transaction, "_give_up")
def what_was_created_for_nothing_is_left_open(real: Any, log: Any) -> None:
    return None


@removes(drop, "_sealing_namespace")
def a_cascade_does_not_see_what_was_linked_meanwhile(
    real: Any, tree: Any, tracked: Any, view: Any, namespace: Any, cascade: bool, token: Any
) -> Any:
    change = real(tree, tracked, view, namespace, cascade, token)
    if not cascade:
        return change
    sealed_draft = Draft(events=encode([NamespaceDropped(cascade=cascade)]), seals=True)
    return JointLogChange(change.tracked, change.view, lambda _view, _passed: sealed_draft, change.base)


@removes(file_changes, "check_new")
def a_batch_of_a_stream_is_not_looked_for(real: Any, streams: Any, batch: Any, name: str) -> None:
    return None


@removes(transaction_steps, "_batches")
def a_batch_that_a_transaction_finds_committed_is_left_out(real: Any, draft: Draft) -> list[Any]:
    return []


@contextmanager
def _forgetful() -> Iterator[None]:
    real = table_state.apply

    def apply(state: Any, event: Any, version: int, blobs: Any, **more: Any) -> Any:
        state_after = real(state, event, version, blobs, **more)
        return replace(state_after, streams={}) if isinstance(event, TableReplaced) else state_after

    with patch.object(table_state, "apply", apply):
        yield


CATALOG_MUTATIONS["a-replace-forgets-the-batches-of-streams"] = _forgetful


@removes(name_tree.NameTree, "unlink")
def a_name_is_unlinked_by_what_was_read_of_its_table(
    real: Any, self: Any, parent: Any, space: str, name: str, entry: Any
) -> None:
    def decide(view: Any, passed: Any) -> Draft:
        if view.state.entry(space, name) != entry:
            raise NotFound("it is gone already")
        return Draft(events=encode([EntryUnlinked(space=space, name=name, id=entry.id, dropped=True)]))

    try:
        parent.tracked.commit(parent.tracked.at_least(parent.view.version), decide)
    except NotFound:
        return


@removes(commits, "is_beyond")
def values_that_others_took_are_committed(real: Any, identity: Any, value: int, taken: int | None) -> bool:
    return True


@removes(identity_rewrite, "reserved")
def other_values_are_not_reserved(real: Any, head: Any, values: Any) -> Any:
    begin = next_values(head.schema, head.tracked.outside.current().state.identities)
    return [
        ValuesTaken(
            column=value.column,
            first=begin[value.column],
            last=begin[value.column] + value.last - value.first,
        )
        for value in values
    ]


@removes(table_state, "apply")
def a_rollback_takes_back_which_values_are_taken(
    real: Any, state: Any, event: Any, *rest: Any, **more: Any
) -> Any:
    after = real(state, event, *rest, **more)
    return replace(after, identities={}) if isinstance(event, RolledBack) else after


@contextmanager
def _any_moment() -> Iterator[None]:
    with patch.object(clocks.WarehouseClocks, "seen_us", 0):
        yield


CATALOG_MUTATIONS["a-transaction-may-begin-before-what-its-client-has-seen"] = _any_moment
