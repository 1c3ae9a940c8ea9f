"""Events are stored only if a reader can read them: a commit that no reader can read would close its log to all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog
from lakelog.catalog.core.schema import ViewColumn, ViewDefinition
from lakelog.catalog.core.state import encode
from lakelog.catalog.core.state.events import TableAltered
from lakelog.catalog.engine.definitions import create_view
from lakelog.log.errors import InvalidInput

COLUMNS = pa.schema([("a", pa.int64())])


def test_an_event_with_a_value_of_another_type_is_not_stored() -> None:
    wrong: Any = {"a": 5}
    with pytest.raises(InvalidInput, match=r"cannot be stored .*Expected `str`"):
        encode([TableAltered(set=wrong)])
    assert encode([TableAltered(set={"a": "5"})])


def test_a_comment_that_is_no_text_makes_no_table(tmp_path: Any) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("ns")
    wrong: Any = 5
    with pytest.raises(InvalidInput, match="cannot be stored"):
        catalog.create_table("ns.t", COLUMNS, comment=wrong)
    catalog.create_table("ns.t", COLUMNS, comment="5")


WRONG: list[dict[str, Any]] = [
    {"columns": (ViewColumn(name=5, type="int", nullable=True, comment=None),)},  # type: ignore[arg-type]
    {"text": 5},
    {"namespace": (5,)},
    {"properties": {"a": 5}},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_view_with_a_value_of_another_type_does_not_close_its_namespace(
    tmp_path: Any, wrong: dict[str, Any]
) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("ns")
    with pytest.raises(InvalidInput):
        create_view(catalog, ("ns", "v"), ViewDefinition(**{"text": "SELECT 1", "columns": (), **wrong}))
    catalog.create_table("ns.t", COLUMNS)
    assert Catalog(str(tmp_path)).list_tables("ns") == [("ns", "t")]
