"""Whether a log agrees with the name that leads to it.

A name is an entry in a namespace's log, and a client that may write there can forge it. The log that it leads
to has a `link`, which changes in the same transactions. So a log is changed because of a name only if its
link is that name. It must not know which change that is.
"""

from __future__ import annotations

from typing import Any

from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.errors import LinkedElsewhere
from lakelog.catalog.names import quoted
from lakelog.log import LogView
from lakelog.log.grammar import shortened


def is_own(view: LogView[Any], parent: str, name: str) -> bool:
    """Return whether a log's link is `name` in the namespace at `parent`, or was when it was dropped."""
    return bool(view.state.link == NameLink(namespace=parent, name=name))


def linked_elsewhere(title: str, url: str, link: NameLink | None) -> LinkedElsewhere:
    """Return the error of a name, as messages have it, that leads to a log which has another link."""
    link_text = (
        "no name at all"
        if link is None
        else f"the name {shortened(quoted([link.name]))} in {shortened(link.namespace) or 'the root'}"
    )
    return LinkedElsewhere(
        f"in the catalog, {title} is at {url}, but the log there has {link_text}: the entry was forged, the table was "
        "taken over by another warehouse, or logs were restored without each other. Open a table by its place, or "
        "register it there"
    )
