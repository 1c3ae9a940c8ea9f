"""Which catalog a request is about."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    # At run time it is imported by the first request that needs it: that takes longer than the start.
    from lakelog.catalog import Catalog

SETTINGS = frozenset({"warehouse", "endpoint", "region", "path_style", "fsync"})


class Catalogs:
    """The catalog of one configuration. Safe to share between threads."""

    def __init__(self, settings: Mapping[str, str], spark: str) -> None:
        unknown = sorted(settings.keys() - SETTINGS)
        if unknown:
            raise InvalidInput(
                f"the catalog has the settings {', '.join(unknown)}, which lakelog does not know: it knows "
                f"{', '.join(sorted(SETTINGS))}; correct spark.sql.catalog.<name>.{unknown[0]}"
            )
        self._settings = dict(settings)
        self._spark = spark
        self._lock = threading.Lock()
        self._made: Catalog | None = None

    def of(self, params: Mapping[str, Any]) -> Catalog:
        """Return the catalog that a request is about."""
        with self._lock:
            if self._made is None:
                from lakelog.catalog import Catalog

                options = {key: value for key, value in self._settings.items() if key != "warehouse"}
                writer = {"engine": f"spark {self._spark}", "user": getpass.getuser()}
                self._made = Catalog(self._settings["warehouse"], options=options, writer=writer)
            return self._made
