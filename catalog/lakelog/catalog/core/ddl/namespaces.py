"""Changes of namespaces: create and alter.

Drops are in `drop`. Each change is decided in a single commit of a single log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from lakelog.catalog.core.ddl.table_places import LOCATION, checked
from lakelog.catalog.core.logs.commits import Token, is_final, or_applied, was_applied_elsewhere
from lakelog.catalog.core.logs.name_tree import FoundLog, NameTree, check_not_forgotten, commit_in
from lakelog.catalog.core.logs.places import has_likely_places, likely_id, place_in
from lakelog.catalog.core.schema.properties.checking import check_namespace_properties
from lakelog.catalog.core.schema.properties.policy import check_policy
from lakelog.catalog.core.state.events import EntryLinked, NamespaceAltered, NamespaceCreated, encode
from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.core.state.namespace_entries import (
    NamespaceEntry,
)
from lakelog.catalog.core.state.namespace_state import (
    NAMESPACE,
    NamespaceState,
)
from lakelog.catalog.errors import NamespaceExists
from lakelog.catalog.names import Identifier, check_namespace, quoted
from lakelog.catalog.next_step import in_words
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import AlreadyExists, InvalidInput


def create_namespace(
    tree: NameTree, namespace: Identifier, properties: Mapping[str, str], token: Token | None
) -> None:
    """Create a namespace in an existing namespace.

    Creates its log first, under an id that nothing leads to, and then the link to it. Raises NamespaceExists;
    raises NoSuchNamespace if the parent is missing, or was dropped in the meantime.
    """
    if not namespace:
        raise NamespaceExists("the root namespace is always there: give the new namespace a name")
    check_namespace(namespace)
    properties = _checked(tree, properties)
    check_policy(properties)
    or_applied(tree.logs, token, lambda: _create(tree, namespace, properties, token))


def _create(
    tree: NameTree, namespace: Identifier, properties: Mapping[str, str], token: Token | None
) -> None:
    name, parent = namespace[-1], tree.writable(namespace[:-1])
    if parent.view.state.entry(NAMESPACE, name) is not None and tree.find_namespace(namespace) is not None:
        error = _exists(namespace)
        if is_final(parent.tracked, token, error):
            raise error
        return
    if was_applied_elsewhere(tree.logs, parent.tracked, token):
        return
    entry = _created(tree, parent, name, properties, token)
    link_event = EntryLinked(space=NAMESPACE, name=name, kind=NAMESPACE, id=entry.id, location=entry.location)

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        if view.state.entry(NAMESPACE, name) is not None:
            raise _exists(namespace)
        check_not_forgotten(view.state, entry.id, quoted(namespace))
        return Draft(events=encode([link_event]))

    commit_in(parent, namespace[:-1], decide, token)


def _created(
    tree: NameTree,
    parent: FoundLog[NamespaceState],
    name: str,
    properties: Mapping[str, str],
    token: Token | None,
) -> NamespaceEntry:
    """Create the log of a namespace, which nothing leads to yet, and return the entry that will lead to it.

    It is created at the likely place if no log was ever there, otherwise at a place of its own.
    """
    above = parent.tracked.location
    # The same token gives the same ids, so that a retry finds the log of the first attempt.
    commit_id = token.commit_id if token is not None else tree.logs.new_id()
    likely = likely_id(tree.logs.url(above), name)
    draft = Draft(events=encode([NamespaceCreated(properties=dict(properties), parent=above, name=name)]))
    # A transaction creates its logs when it commits, which is too late to choose another place. With a
    # location, no other namespace may have the folder of its tables, even if the warehouse is removed and
    # another is made at its URL.
    may_be_there = (
        has_likely_places(tree.logs.warehouse)
        and LOCATION not in properties
        and not parent.tracked.transaction.is_open
        and likely not in parent.view.state.forgotten
    )
    if may_be_there:
        # A namespace that was dropped, moved or never linked keeps its place for ever. So a log with this
        # id is not created again.
        with suppress(AlreadyExists):
            child = tree.logs.namespace(place_in(above, likely))
            view = child.create(draft, log_id=likely, commit_id=commit_id, first=True)
            if _is_new(view, above, name):
                return NamespaceEntry(kind=NAMESPACE, id=likely, location=place_in(above, likely))
    location = place_in(above, commit_id)
    view = tree.logs.namespace(location).create(draft, log_id=commit_id, commit_id=commit_id)
    if not _is_new(view, above, name):
        new_id = tree.logs.new_id()
        location = place_in(above, new_id)
        view = tree.logs.namespace(location).create(draft, log_id=new_id, commit_id=commit_id)
    return NamespaceEntry(kind=NAMESPACE, id=view.log_id, location=location)


def _is_new(view: LogView[NamespaceState], above: str, name: str) -> bool:
    """Return whether a log can be linked under a name: it was created for it, and not dropped or moved since.

    The same token may have created it long ago, in a version of the namespace that the token does not know.
    """
    return not view.sealed and view.state.link == NameLink(namespace=above, name=name)


def alter_namespace(
    tree: NameTree,
    namespace: Identifier,
    set_: Mapping[str, str],
    removed: Sequence[str],
    token: Token | None,
) -> None:
    """Set and remove properties in a single commit. A new location is for tables created from then on."""
    set_ = _checked(tree, set_)
    if isinstance(removed, str):
        raise InvalidInput(f"the properties to remove are the text {removed!r}: give a list of names")
    if not set_ and not removed:
        tree.namespace(namespace)
        return
    draft = Draft(events=encode([NamespaceAltered(set=dict(set_), removed=tuple(removed))]))

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        other_properties = {key: value for key, value in view.state.properties.items() if key not in removed}
        check_policy({**other_properties, **set_})
        return draft

    def alter() -> None:
        namespace_head = tree.writable(namespace)
        if not was_applied_elsewhere(tree.logs, namespace_head.tracked, token):
            commit_in(namespace_head, namespace, decide, token)

    or_applied(tree.logs, token, alter)


def _checked(tree: NameTree, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties as they are stored: a location in its canonical spelling."""
    check_namespace_properties(properties)
    if LOCATION not in properties:
        return properties
    return {**properties, LOCATION: checked(tree.logs, properties[LOCATION])}


def _exists(namespace: Identifier) -> NamespaceExists:
    instead = in_words(
        python=", or give if_not_exists=True if it may exist",
        elsewhere=", or write IF NOT EXISTS if it may exist",
    )
    return NamespaceExists(f"there is a namespace {quoted(namespace)} already: choose another name{instead}")
