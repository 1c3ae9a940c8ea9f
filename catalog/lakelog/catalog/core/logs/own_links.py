"""Whether a log agrees with the name that leads to it.

A name is an entry in a namespace's log: a client that may write there can forge it. The log that it leads to has a
`link`, which changes in the same transactions. So a log is changed because of a name only where its link is that name.
It must not know what the change is.
"""

from __future__ import annotations

from typing import Any

from lakelog.catalog.core.state import Link
from lakelog.catalog.errors import LinkedElsewhere
from lakelog.catalog.names import quoted
from lakelog.log import View
from lakelog.log.grammar import shortened


def is_own(view: View[Any], parent: str, name: str) -> bool:
    """Return whether a log's table or namespace is called `name` in the namespace at `parent`, or was when dropped."""
    return bool(view.state.link == Link(namespace=parent, name=name))


def linked_elsewhere(title: str, url: str, link: Link | None) -> LinkedElsewhere:
    """Return the error of a name, as messages have it, that leads to a log which has another link."""
    now = (
        "no name at all"
        if link is None
        else f"the name {shortened(quoted([link.name]))} in {shortened(link.namespace) or 'the root'}"
    )
    return LinkedElsewhere(
        f"in the catalog, {title} is at {url}, but the log there has {now}: the entry was forged, the table was taken "
        "over by another warehouse, or logs were restored without each other. Open a table by its place, or register "
        "it there"
    )
