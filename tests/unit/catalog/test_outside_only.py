"""What a catalog can do, and a transaction not, is refused there by name."""

from __future__ import annotations

import inspect

import pytest

from lakelog.catalog import Catalog, Transaction
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.outside_only import OutsideOnly
from lakelog.log.errors import Unsupported


def methods(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_what_only_a_catalog_can_do_is_what_a_transaction_refuses() -> None:
    assert methods(Catalog) - methods(CatalogNames) - {"from_env"} == methods(OutsideOnly)


def test_nothing_that_both_can_do_is_refused() -> None:
    assert not methods(CatalogNames) & methods(OutsideOnly)
    assert not issubclass(Transaction, Catalog)


@pytest.mark.parametrize("name", sorted(methods(OutsideOnly)))
def test_a_refusal_says_what_to_do(name: str) -> None:
    given_texts = ("x",) if name.endswith("_cut") else ()
    with pytest.raises(Unsupported, match=":"):
        getattr(OutsideOnly(), name)(*given_texts)
