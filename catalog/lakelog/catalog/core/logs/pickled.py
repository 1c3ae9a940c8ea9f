"""Catalogs, tables and reads on their way to other processes: how to open them again, never their knowledge.

A pickle has the place, the options, the version and the requested read. It has no caches, locks or
connections, and no secrets. Keys in an endpoint and in the writer's facts are left out, and the process that
reads the pickle finds credentials by its platform's usual chain.

Rule: an object that is opened again is the same table at the same version, or an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Protocol, Self
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakValueDictionary

from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.table_head import FoundName, TableHead
from lakelog.catalog.core.state.refs import MAIN
from lakelog.catalog.errors import NoSuchRef, NoSuchTable
from lakelog.catalog.names import Identifier
from lakelog.log.errors import InvalidInput, NotFound
from lakelog.log.secrets import masked_facts
from lakelog.log.stores import ENDPOINT_OPTIONS, is_of_one_process


class HasLogs(Protocol):
    _logs: LogCache


_opened: WeakValueDictionary[str, LogCache] = WeakValueDictionary()
"""Tables of a catalog share its logs in a worker too, which opens many of them again."""


@dataclass(frozen=True, slots=True)
class CatalogOpening:
    """The arguments that opened a catalog, as far as another process can use them.

    `reopen` opens it again, and is pickled by its name.
    """

    reopen: Callable[[CatalogOpening], HasLogs]
    warehouse: str
    options: Mapping[str, str]
    writer: Mapping[str, Any] | None
    as_of: Any
    as_of_namespace: Identifier
    maintenance: str
    proposals: bool | None
    process: int = field(default_factory=os.getpid)

    @staticmethod
    def without_secrets(**given: Any) -> CatalogOpening:
        options, writer = dict(given.pop("options") or {}), given.pop("writer")
        for name in options.keys() & ENDPOINT_OPTIONS:
            parts = urlsplit(options[name])
            place = parts.netloc.rpartition("@")[2]
            options[name] = urlunsplit((parts.scheme, place, parts.path, "", ""))
        return CatalogOpening(
            options=options, writer=None if writer is None else masked_facts(writer), **given
        )

    def check_process(self) -> None:
        """Raise InvalidInput for a warehouse that is not in this process."""
        if is_of_one_process(self.warehouse) and self.process != os.getpid():
            raise InvalidInput(
                f"the warehouse {self.warehouse} is in the memory of another process: give processes one in a folder "
                "or a bucket"
            )

    def logs(self) -> LogCache:
        key = repr(self)
        logs = _opened.get(key)
        if logs is None:
            logs = _opened[key] = self.reopen(self)._logs
        return logs


@dataclass(frozen=True, slots=True)
class PickledHead:
    """A version of a table, by the facts that open it again."""

    opening: CatalogOpening
    location: str
    id: str
    version: int
    name: str
    found_by: FoundName | None
    ref: str
    ref_id: str | None

    @staticmethod
    def of(head: TableHead, what: str) -> PickledHead:
        opener = head.logs.opening
        if not isinstance(opener, CatalogOpening):
            raise TypeError(
                f"{what} of a transaction cannot be pickled, as no other process sees the transaction: commit it, and "
                "load the table again"
            )
        return PickledHead(
            opening=opener,
            location=head.tracked.location,
            id=head.id,
            version=head.version,
            name=head.name,
            found_by=head.found_by,
            ref=head.ref,
            ref_id=head.ref_id,
        )

    def head(self) -> TableHead:
        """Return the same version.

        Raises NoSuchTable or NoSuchRef; NotFound for a version that has expired since.
        """
        logs = self.opening.logs()
        table_log = logs.table(self.location)
        try:
            view = table_log.at_its_place()
        except NotFound as error:
            raise NoSuchTable(f"there is no table {self.name}: it was dropped") from error
        if view.sealed or view.log_id != self.id:
            raise NoSuchTable(f"there is no table {self.name}: it was dropped since it was pickled")
        head = TableHead(logs, table_log, view, self.name, self.found_by).at_version(self.version)
        if self.ref == MAIN:
            return head
        head = head.on(self.ref)
        if head.ref_id != self.ref_id:
            raise NoSuchRef(f"the tag or branch {self.ref} of {self.name} was dropped or replaced")
        return head


class UnchangingValue:
    """A value that copies share, because it never changes, or belongs to the whole process."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class OfThisProcess:
    """An object that can be neither pickled nor copied."""

    _instead: ClassVar[str] = "make another one there"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"a {name} cannot be pickled or copied, as it belongs to this process: {self._instead}"
        )
