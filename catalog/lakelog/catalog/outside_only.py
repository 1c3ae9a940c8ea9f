"""What a catalog can do and a transaction cannot: each says why when it is tried in one, and where to do it instead.

Every public method of `Catalog` is either one of `CatalogNames`, which a transaction has too, or refused here.
"""

from __future__ import annotations

from typing import NoReturn

from lakelog.catalog.logs import NO_MAINTENANCE
from lakelog.log.errors import Unsupported


class OutsideOnly:
    """Refusals for those who take a transaction for the catalog. Each raises Unsupported."""

    def begin(self, isolation: str | None = None) -> NoReturn:
        raise Unsupported("a transaction cannot begin within another one: commit or roll back this one first")

    def transaction(self, isolation: str | None = None) -> NoReturn:
        self.begin(isolation)

    def save_cut(self, name: str, *, token: object = None) -> NoReturn:
        raise Unsupported("a cut is of what is committed: save it before or after the transaction")

    def drop_cut(self, name: str, *, token: object = None) -> NoReturn:
        raise Unsupported("saved cuts are not part of transactions: drop it before or after this one")

    def expire(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported(NO_MAINTENANCE)

    def vacuum(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported(NO_MAINTENANCE)

    def audit(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported("an audit is of what is committed: run it on the catalog itself")

    def fsck(self, *given: object, **named: object) -> NoReturn:
        raise Unsupported("a check is of what is committed: run fsck on the catalog itself")
