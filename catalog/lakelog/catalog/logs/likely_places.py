"""Where a namespace is likely to be, by its name alone: what a client that knows nothing yet asks for first.

The first namespace of a name has an id that follows from the name and the namespace above; others have new ones. So a
place that is guessed here is advice: that a name leads there is believed only from the log above, at its head. It
requests nothing, and a wrong guess costs the request that was made for it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

from lakelog.catalog.logs.tracked_log import TrackedLog
from lakelog.catalog.state import NamespaceState
from lakelog.log import View

ID_LENGTH = 26
"""As long as an id that is made at random: 130 bits."""


def likely_id(parent: str, name: str) -> str:
    """Return the id of the first namespace of a name; `parent` is the id of the namespace above, or the warehouse."""
    # A name that is no text in UTF-8 is looked up in vain, and not refused here.
    digest = hashlib.sha256(f"{parent}\n{name}".encode(errors="replace")).digest()
    return base64.b32encode(digest).decode().lower()[:ID_LENGTH]


def parent_of(tracked: TrackedLog[Any], view: View[NamespaceState], warehouse: str) -> str:
    """Return what the ids of namespaces in this one are made of.

    No other namespace may have made the same: an id names one namespace, also after it moved. A log's id is its own.
    The root's cannot be known before its log is read; so there it is the warehouse, unless that is a folder inside of
    another one.
    """
    is_top = not tracked.location and view.state.link is None
    return warehouse if is_top else view.log_id


def place_in(parent: str, id: str) -> str:
    """Return the location of the namespace of an id, below that of the namespace above."""
    return f"{parent}/n-{id}" if parent else f"n-{id}"


def id_at(location: str) -> str:
    """Return the id of the namespace at a location; none of the root."""
    return location.rpartition("/")[2].removeprefix("n-")


def likely_places(parent: str, place: str, names: Sequence[str]) -> list[str]:
    """Return where the namespaces of a path of names are likely to be, below the one at `place`."""
    places: list[str] = []
    for name in names:
        parent = likely_id(parent, name)
        place = place_in(place, parent)
        places.append(place)
    return places
