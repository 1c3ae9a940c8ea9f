"""The part of a catalog's front door that erases rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.core.logs import observed
from lakelog.catalog.core.schema import Filter, as_predicate
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.names import Name, table_identifier

if TYPE_CHECKING:
    from lakelog.catalog.keeping.erasure import ErasureWork, Forgotten


@observed(lambda catalog: catalog._logs)
@explaining
class CatalogErasure(CatalogNames):
    """A catalog that can erase rows."""

    def forget(
        self,
        table: Name,
        where: Filter,
        *,
        dry_run: bool = True,
        key: str | None = None,
        reference: str | None = None,
        leave_foreign: bool = False,
        progress: Callable[[str], None] | None = None,
        work: ErasureWork | None = None,
    ) -> Forgotten:
        """Erase the rows for which `where` is true from all present and past data of a table.

        That is every version, tag, branch and clone, change data, statistics, proposals, Iceberg's metadata,
        and dropped tables of its name. All older versions of these expire. Tags and saved cuts that need them
        are dropped, and writes under way fail. With `dry_run` (default), it only reports all that, and
        changes nothing. At the end all remaining objects are read, and a receipt is committed. It is signed
        by the Ed25519 key in the PEM file `key`, and names `reference`, and all unreachable copies. `work` is
        how an engine reads and writes rows. None: in this process. See docs/erasure.md. Raises NoSuchTable.
        Raises InvalidInput if a column does not exist, and unless `leave_foreign`, if another writer's files
        have such rows. Raises Unsupported if only an engine knows the condition. After DoneInPart or
        CommitConflict, the next call goes on.
        """
        from lakelog.catalog.keeping.erasure import forget, signer_of

        self._logs.check_writable()
        return forget(
            self._tree,
            table_identifier(table),
            as_predicate(where),
            dry_run=dry_run,
            signer=None if key is None else signer_of(key),
            reference=reference,
            leave_foreign=leave_foreign,
            progress=progress,
            work=work,
        )
