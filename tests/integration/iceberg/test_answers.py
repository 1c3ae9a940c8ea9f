"""What clients of Iceberg's REST catalog are answered, without a server between: paths, statuses, headers."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pytest

from lakelog.catalog import Catalog
from lakelog.rest import HttpAnswer, WarehouseAnswers

ID = pa.schema({"id": pa.int64()})
ORDERS = "/v1/namespaces/shop/tables/orders"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "w", options={"fsync": "off"})
    catalog.create_namespace("shop")
    catalog.create_table("shop.orders", ID).append(pa.table({"id": [1]}))
    return catalog


def body(answer: HttpAnswer) -> dict:
    return msgspec.json.decode(answer.body)


def names(answers: WarehouseAnswers, path: str) -> list[str]:
    return [identifier["name"] for identifier in body(answers.answer("GET", path))["identifiers"]]


def test_a_space_and_a_plus_are_found_as_each_client_writes_them(catalog: Catalog) -> None:
    """Java's clients write + for a space and %2B for a plus, those of Rust and Go %20 and +, others %20 and %2B."""
    answers = WarehouseAnswers(catalog)
    for namespace, table in (("a b", "s"), ("c+d", "p"), ("e f", "x"), ("e+f", "y")):
        catalog.create_namespace((namespace,))
        catalog.create_table((namespace, table), ID)
    assert (
        names(answers, "/v1/namespaces/a+b/tables") == names(answers, "/v1/namespaces/a%20b/tables") == ["s"]
    )
    assert (
        names(answers, "/v1/namespaces/c+d/tables") == names(answers, "/v1/namespaces/c%2Bd/tables") == ["p"]
    )
    # It may be either; none is taken for the other.
    assert names(answers, "/v1/namespaces/e%20f/tables") == ["x"]
    assert names(answers, "/v1/namespaces/e%2Bf/tables") == ["y"]
    assert answers.answer("GET", "/v1/namespaces/e+f/tables").status == 400
    assert answers.answer("GET", "/v1/namespaces/g+h/tables").status == 404


def test_the_root_has_no_tables(catalog: Catalog) -> None:
    catalog.create_table("top", ID)
    for path in ("/v1/namespaces//tables", "/v1/namespaces//tables/top", "/v1/namespaces//views"):
        assert WarehouseAnswers(catalog).answer("GET", path).status == 404


@pytest.mark.parametrize(
    "name", ["a.b", "..", "a/b", "100%", "%2F", "'\"`", "ü 東京", "n" * 254, "A", "?x=1", "#"]
)
def test_names_are_found_whatever_they_hold(catalog: Catalog, name: str) -> None:
    catalog.create_namespace(("shop", name))
    catalog.create_table(("shop", name, name), ID)
    catalog.create_table(("shop", name, name.swapcase() + "_"), ID)
    path = f"/v1/namespaces/shop%1F{quote(name, safe='')}"
    answers = WarehouseAnswers(catalog)
    assert sorted(names(answers, f"{path}/tables")) == sorted([name, name.swapcase() + "_"])
    loaded_answer = answers.answer("GET", f"{path}/tables/{quote(name, safe='')}")
    assert body(loaded_answer)["metadata"]["properties"]["lakelog.log-id"]
    assert body(answers.answer("GET", f"/v1/namespaces?parent=shop%1F{quote(name, safe='')}")) == {
        "namespaces": []
    }


def test_a_client_that_has_the_newest_metadata_is_not_sent_it_again(catalog: Catalog) -> None:
    answers = WarehouseAnswers(catalog)
    first = answers.answer("GET", ORDERS)
    etag = first.headers["ETag"]
    for known_etag in (etag, f"W/{etag}", f'"other", {etag}'):
        again = answers.answer("GET", ORDERS, known_etag)
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", etag)
    catalog.load_table("shop.orders").append(pa.table({"id": [2]}))
    later = answers.answer("GET", ORDERS, etag)
    assert later.status == 200 and later.headers["ETag"] != etag


def test_snapshots_of_tags_and_branches_alone_are_sent_where_these_are_asked_for(catalog: Catalog) -> None:
    answers, orders = WarehouseAnswers(catalog), catalog.load_table("shop.orders")
    orders.create_tag("first")
    for number in range(3):
        orders = orders.append(pa.table({"id": [number]}))
    whole_metadata = body(answers.answer("GET", ORDERS))["metadata"]
    part = body(answers.answer("GET", f"{ORDERS}?snapshots=refs"))["metadata"]
    assert (
        len(whole_metadata["snapshots"]) == 4
        and body(answers.answer("GET", f"{ORDERS}?snapshots=all"))["metadata"] == whole_metadata
    )
    refs = {each["snapshot-id"] for each in whole_metadata["refs"].values()}
    assert {each_snapshot["snapshot-id"] for each_snapshot in part["snapshots"]} == refs and len(refs) == 2
    assert {**part, "snapshots": whole_metadata["snapshots"]} == whole_metadata
    assert answers.answer("GET", f"{ORDERS}?snapshots=some").status == 400


def test_what_a_retry_does_not_mend_is_no_503(catalog: Catalog) -> None:
    (log,) = Path(catalog.warehouse).glob("n-*/t-*/_log")
    for path in log.iterdir():
        if path.is_file():
            path.write_bytes(b"?")
    answer = WarehouseAnswers(Catalog(catalog.warehouse)).answer("GET", ORDERS)
    assert (answer.status, body(answer)["error"]["type"]) == (500, "InternalServerError")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_a_write_is_refused_and_the_answer_has_what_is_allowed(catalog: Catalog, method: str) -> None:
    answer = WarehouseAnswers(catalog).answer(method, ORDERS)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD") and catalog.table_exists(
        "shop.orders"
    )
