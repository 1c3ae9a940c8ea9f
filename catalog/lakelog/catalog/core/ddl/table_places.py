"""The places of tables that the catalog chooses.

A table's place is the folder `t-<id>` below the namespace's own; or, where the namespace has the property `location`,
below `<location>/<the namespace's place>`. So the tables of namespaces with the same location are apart, and a folder
there shows which namespace it belongs to: by the whole place, as a client that may write to one namespace can give any
id to another one that it makes in there. The namespace's own log stays at its place, regardless of the property.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakelog.catalog.core.logs import Found, LogCache, check_not_own, data_folders, spellings
from lakelog.catalog.core.state import NamespaceState
from lakelog.log import View, canonical_url
from lakelog.log.errors import InvalidInput
from lakelog.log.grammar import is_location, shortened

LOCATION = "location"
LOCATION_LIMIT_BYTES = 512

_CHOSEN = re.compile(r"(.*/)?(n-[a-z2-7]{26})/t-[a-z2-7]{26}")


def new_table(logs: LogCache, namespace: Found[NamespaceState] | None, table_id: str) -> str:
    """Return the location of a new table in that namespace; None is the root of a warehouse that does not exist yet."""
    if namespace is None:
        return f"t-{table_id}"
    url = namespace.view.state.properties.get(LOCATION)
    if url:
        _check_absolute(url)
        check_not_own(url)
    folder = _chosen(logs, namespace.tracked.location, namespace.view) or namespace.tracked.location
    return f"{folder}/t-{table_id}" if folder else f"t-{table_id}"


def table_folders(logs: LogCache, location: str, view: View[NamespaceState]) -> Iterator[str]:
    """Yield the known locations below which the namespace at `location` has put tables.

    A former one is known as long as it has a table that the namespace leads to or has dropped.
    """
    state = view.state
    places = {entry.location for names in state.entries.values() for entry in names.values()}
    places |= {dropped.location for dropped in state.dropped.values()}
    found = {match[0].rpartition("/")[0] for place in places if (match := _CHOSEN.fullmatch(place))}
    own = {folder for folder in found if f"/{folder}".endswith(f"/{_part_of(location, view)}")}
    try:
        chosen = _chosen(logs, location, view)
    except InvalidInput:
        chosen = None  # one that was forged: no table can be put there
    yield from sorted({location, chosen or location} | own)


def _chosen(logs: LogCache, location: str, view: View[NamespaceState]) -> str | None:
    url = view.state.properties.get(LOCATION)
    return logs.location(f"{url.rstrip('/')}/{_part_of(location, view)}") if url else None


def _part_of(location: str, view: View[NamespaceState]) -> str:
    """Return the part of a folder's place that says which namespace it is of: its place, the root's id."""
    return location or f"n-{view.log_id}"


def _check_absolute(url: str) -> None:
    if not url.startswith("/") and "://" not in url and not url.startswith("file:/"):
        raise InvalidInput(f"the location {url!r} is relative: give an absolute path or a URL")


def checked(logs: LogCache, url: str) -> str:
    """Return the canonical spelling of a namespace's new `location`. InvalidInput where it cannot be one."""
    _check_absolute(url)
    spelled = canonical_url(url)
    if len(spelled.encode()) > LOCATION_LIMIT_BYTES:
        raise InvalidInput(
            f"the location {url[:60]}… is longer than {LOCATION_LIMIT_BYTES} bytes: choose a shorter one"
        )
    check_separate(logs, url)
    return spelled


def check_separate(logs: LogCache, url: str) -> None:
    """Raise InvalidInput for the place of a user's table that is no place, the warehouse itself or lakelog's own.

    Costs a LIST for each part of the place that is called `data`.
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
        tracked = logs.unread(logs.location(table))
        if next(iter(tracked.store.list_after(f"{tracked.log.keys.log}/")), None) is not None:
            raise InvalidInput(
                f"the location {url} is inside of lakelog's own folders: data/ belongs to the table at {table}. Choose "
                "a separate folder"
            )
