"""The methods of a catalog that a transaction refuses.

Each error says why, and names an alternative. Every public method of `Catalog` is either a method of
`CatalogNames`, which a transaction has too, or refused here.
"""

from __future__ import annotations

from typing import NoReturn

from lakelog.catalog.core.logs import NO_MAINTENANCE
from lakelog.log.errors import Unsupported


class OutsideOnly:
    """Refusals of the catalog's methods that a transaction does not have. All raise Unsupported."""

    def begin(self, isolation: str | None = None) -> NoReturn:
        raise Unsupported("a transaction cannot begin within another one: commit or roll back this one first")

    def transaction(self, isolation: str | None = None) -> NoReturn:
        self.begin(isolation)

    def save_cut(self, name: str, *, namespace: object = (), token: object = None) -> NoReturn:
        raise Unsupported("a cut has committed versions only: save it before or after the transaction")

    def drop_cut(self, name: str, *, namespace: object = (), token: object = None) -> NoReturn:
        raise Unsupported("saved cuts are not part of transactions: drop it before or after the transaction")

    def clone(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported(
            "a clone is not part of a transaction: clone before or after it, and change the clone within it"
        )

    def clone_namespace(self, *given: object, **named: object) -> NoReturn:
        self.clone()

    def import_table(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported("an import is not part of a transaction: import before or after it")

    def adopt_files(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported(NO_MAINTENANCE)

    def expire(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported(NO_MAINTENANCE)

    def vacuum(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported(NO_MAINTENANCE)

    def forget(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported(NO_MAINTENANCE)

    def backup(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported(
            "a backup is of committed versions: make it and restore from it outside of the transaction"
        )

    def backups(self, *given: object, **named: object) -> NoReturn:
        self.backup()

    def delete_backups(self, *given: object, **named: object) -> NoReturn:
        self.backup()

    def copy(self, *given: object, **named: object) -> NoReturn:
        self.backup()

    def copy_table(self, *given: object, **named: object) -> NoReturn:
        self.backup()

    def finish_copy(self, *given: object, **named: object) -> NoReturn:
        self.backup()

    def verify_backup(self, *given: object, **named: object) -> NoReturn:
        self.backup()

    def restore_warehouse(self, *given: object, **named: object) -> NoReturn:
        self.backup()

    def restore_table(self, *given: object, **named: object) -> NoReturn:
        self.backup()

    def audit(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported("an audit covers committed changes only: run it on the catalog itself")

    def picture(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported("a picture shows committed changes only: draw it of the catalog itself")

    def health(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported("health is that of committed versions: ask the catalog itself")

    def maintain(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported(NO_MAINTENANCE)

    def fsck(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported("a check covers committed changes only: run fsck on the catalog itself")
