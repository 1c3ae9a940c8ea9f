"""A picture as users get it: to look at in a notebook, to keep as a file, or as JSON for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from lakelog.catalog.looking.pictures.model import Picture
from lakelog.catalog.looking.pictures.page import framed, page_of


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a table, a namespace or a warehouse holds and what happened to it; `facts` are what is shown."""

    facts: Picture

    def to_html(self) -> str:
        """Return one HTML page that needs nothing else, and no network."""
        return page_of(self.facts)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON has them; members that are absent have their defaults."""
        said: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.facts))
        return said

    def _repr_html_(self) -> str:
        return framed(self.facts)
