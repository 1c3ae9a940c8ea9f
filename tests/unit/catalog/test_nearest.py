"""Names that an error suggests: alike, few, and never any that is only there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, LakelogError, engine
from lakelog.catalog.nearest import NAMES_MAX, nearest


@pytest.mark.parametrize(
    ("name", "names", "like"),
    [
        ("ordres", ["orders", "customers"], ["orders"]),
        ("ORDERS", ["orders", "Orders"], ["orders", "Orders"]),
        ("x", ["orders", "y"], []),
        ("", ["orders"], []),
        ("order", ["orders", "orders1", "orders2", "orders3"], ["orders"]),
    ],
)
def test_names_are_alike_and_few(name, names, like):
    found_nearest = nearest(name, names)
    assert found_nearest[: len(like)] == like and len(found_nearest) <= 3
    assert like or not found_nearest


def test_of_many_names_only_some_are_compared():
    names = (f"customer_orders_{n}" for n in range(100 * NAMES_MAX))
    nearest("customer_orders_9", names)
    assert next(names) == f"customer_orders_{NAMES_MAX}"


def test_an_error_about_a_table_a_namespace_or_a_column_suggests_the_nearest(tmp_path):
    catalog = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    catalog.create_namespace("shop")
    table = catalog.create_table(
        "shop.orders", pa.schema({"customer": pa.string(), "at": pa.struct({"city": pa.string()})})
    )

    def error(call) -> str:
        with pytest.raises(LakelogError) as failed_error:
            call()
        return str(failed_error.value)

    meant_text = "did you mean `shop`.`orders`?"
    assert meant_text in error(lambda: catalog.load_table("shop.ordres"))
    assert meant_text in error(lambda: catalog.load_table("shop.Orders"))
    assert meant_text in error(lambda: catalog.load_table("shp.orders"))
    assert meant_text in error(lambda: engine.load_relation(catalog, "shop.order"))
    assert "list its namespace" in error(lambda: catalog.load_table("shop.visits"))
    assert "`shop`: it is a namespace" in error(lambda: catalog.load_table("shop"))
    assert "`shop`.`orders`: it is a table" in error(lambda: catalog.list_tables("shop.orders"))
    assert meant_text in error(lambda: catalog.load_table("orders"))
    assert "write its namespace before the name" in error(lambda: catalog.load_table("visits"))
    for name in ("Shop.Orders", "shp.ordres", "SHOP.orders"):
        fresh = Catalog(catalog.warehouse)
        assert meant_text in error(lambda fresh=fresh, name=name: fresh.load_table(name)), name
    leave_out = "leave the catalog's name out, as in `shop`.`orders`"
    assert leave_out in error(lambda: Catalog(catalog.warehouse).load_table("lake.shop.orders"))
    assert "leave the catalog's name out, as in `shop`" in error(lambda: catalog.list_tables("lake.shop"))
    assert "there is a namespace `shop`, without that name" in error(
        lambda: catalog.load_table("Shop.visits")
    )
    assert "did you mean `shop`?" in error(lambda: catalog.list_tables("shopp"))
    assert "did you mean customer?; the columns are customer, at" in error(
        lambda: table.scan(["costumer"]).to_arrow()
    )
    assert "did you mean at.city?" in error(lambda: table.scan(filter="at.citty = 'x'").to_arrow())
