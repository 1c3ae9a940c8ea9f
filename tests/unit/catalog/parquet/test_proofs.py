"""Which CHECKs the rows of another definition have to be proven for."""

from __future__ import annotations

import msgspec
import pytest

from lakelog.catalog.core.parquet.proofs import new_checks
from lakelog.catalog.core.schema.constraints import CheckConstraint
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder
from lakelog.catalog.core.schema.predicate import col
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import AtomicType, Field


def defined(type: str, *, is_checked: bool = True) -> Metadata:
    check = CheckConstraint(name="c1", columns=(1,), sql="c = 'ab'", predicate=(col("c") == "ab").to_json())
    return Metadata(
        schema=Schema(fields=(Field(id=1, name="c", physical="c_1", type=AtomicType(type)),), last_id=1),
        specs=(PartitionSpec(id=0, fields=()),),
        sort_order=SortOrder(fields=()),
        properties={},
        constraints=(check,) if is_checked else (),
    )


@pytest.mark.parametrize(
    ("before", "is_new"),
    [
        (defined("string"), False),
        (msgspec.structs.replace(defined("string"), comment="another"), False),
        (defined("string", is_checked=False), True),
        # Rows that satisfied it as CHAR have blanks that count now.
        (defined("char(5)"), True),
    ],
)
def test_a_check_is_new_if_the_rows_were_not_checked_as_values_of_the_same_type(
    before: Metadata, is_new: bool
) -> None:
    assert bool(new_checks(before, defined("string"))) is is_new
