"""A picture as users get it: to look at in a notebook, to keep as a file, or as JSON for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from lakelog.catalog.looking.pictures.model import Picture
from lakelog.catalog.looking.pictures.page import framed, page_of


@dataclass(frozen=True, slots=True)
class Sheet:
    """The contents and the history of a table, a namespace or a warehouse, to look at; `facts` has all of it."""

    facts: Picture

    def to_html(self) -> str:
        """Return one HTML page that needs nothing else, and no network."""
        return page_of(self.facts)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as in JSON; absent members have their defaults."""
        facts: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.facts))
        return facts

    def _repr_html_(self) -> str:
        return framed(self.facts)
