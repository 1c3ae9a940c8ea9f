"""The places of tables that the catalog chooses.

A table's place is the folder `t-<id>` below the namespace's own folder. If the namespace has the property
`location`, it is below `<location>/<the namespace's place>` instead. So tables of namespaces with the same
location stay apart, and a folder there shows its namespace. It shows the whole place, because a client that
may write to a namespace can give any id to a namespace that it makes in there. The namespace's own log
stays at its place, regardless of the property.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.name_tree import FoundLog
from lakelog.catalog.core.logs.own_folders import check_not_own, data_folders, spellings
from lakelog.catalog.core.state.namespace_state import NamespaceState
from lakelog.log import LogView, canonical_url
from lakelog.log.errors import InvalidInput
from lakelog.log.grammar import is_location, shortened

LOCATION = "location"
LOCATION_LIMIT_BYTES = 512

_CHOSEN = re.compile(r"(.*/)?(n-[a-z2-7]{26})/t-[a-z2-7]{26}")


def new_table(logs: LogCache, namespace: FoundLog[NamespaceState] | None, table_id: str) -> str:
    """Return the location of a new table in that namespace; None is the root of a missing warehouse."""
    if namespace is None:
        return f"t-{table_id}"
    url = namespace.view.state.properties.get(LOCATION)
    if url:
        _check_absolute(url)
        check_not_own(url)
    folder = _chosen(logs, namespace.tracked.location, namespace.view) or namespace.tracked.location
    return f"{folder}/t-{table_id}" if folder else f"t-{table_id}"


def table_folders(logs: LogCache, location: str, view: LogView[NamespaceState]) -> Iterator[str]:
    """Yield the known locations below which the namespace at `location` has put tables.

    A former location is known as long as it has a table that the namespace leads to or has dropped.
    """
    state = view.state
    places = {entry.location for _, _, entry in state.all_logs()}
    places |= {drop.entry.location for drop in state.dropped_logs()}
    folders = {match[0].rpartition("/")[0] for place in places if (match := _CHOSEN.fullmatch(place))}
    own = {folder for folder in folders if f"/{folder}".endswith(f"/{_part_of(location, view)}")}
    try:
        present_folder = _chosen(logs, location, view)
    except InvalidInput:
        present_folder = None  # a forged location: no table can be put there
    yield from sorted({location, present_folder or location} | own)


def _chosen(logs: LogCache, location: str, view: LogView[NamespaceState]) -> str | None:
    url = view.state.properties.get(LOCATION)
    return logs.location(f"{url.rstrip('/')}/{_part_of(location, view)}") if url else None


def _part_of(location: str, view: LogView[NamespaceState]) -> str:
    """Return the part of a folder's place that names its namespace: its place, or for the root its id."""
    return location or f"n-{view.log_id}"


def _check_absolute(url: str) -> None:
    if not url.startswith("/") and "://" not in url and not url.startswith("file:/"):
        raise InvalidInput(f"the location {url!r} is relative: give an absolute path or a URL")


def checked(logs: LogCache, url: str) -> str:
    """Return the canonical spelling of a namespace's new `location`.

    Raises InvalidInput if it cannot be a location.
    """
    _check_absolute(url)
    canonical = canonical_url(url)
    if len(canonical.encode()) > LOCATION_LIMIT_BYTES:
        raise InvalidInput(
            f"the location {url[:60]}… is longer than {LOCATION_LIMIT_BYTES} bytes: choose a shorter one"
        )
    check_separate(logs, url)
    return canonical


def check_separate(logs: LogCache, url: str) -> None:
    """Raise InvalidInput if a user's place for a table is not a separate, valid place.

    It must not be the warehouse itself, or one of lakelog's own folders. Costs a LIST for each part of the
    place that is called `data`.
    """
    if not is_location(logs.location(url)):
        raise InvalidInput(
            f"the location {shortened(repr(url))} cannot be a table's: give an absolute path or a URL, without "
            "backslashes and control characters"
        )
    if {*spellings(url)} & {*spellings(logs.warehouse)}:
        raise InvalidInput(f"the location {url} is the warehouse itself: choose a separate folder")
    check_not_own(url)
    for table in data_folders(url):
        table_log = logs.unread(logs.location(table))
        if next(iter(table_log.store.list_after(f"{table_log.log.keys.log}/")), None) is not None:
            raise InvalidInput(
                f"the location {url} is inside of lakelog's own folders: data/ belongs to the table at {table}. Choose "
                "a separate folder"
            )
