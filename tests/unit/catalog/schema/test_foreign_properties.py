"""Properties of other formats: each that is known is obeyed, refused with what to do, or kept with a warning."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog
from lakelog.catalog.core.schema import kept_of_import
from lakelog.catalog.core.schema.foreign_properties import ForeignPropertyWarning, page_rows, warn_of_foreign
from lakelog.catalog.core.schema.foreign_properties.known import FOREIGN, PropertyVerdict
from lakelog.catalog.core.schema.properties import checking
from lakelog.catalog.core.schema.properties.checking import check_properties
from lakelog.log.errors import InvalidInput

PAGE = Path(__file__).parents[4] / "docs" / "properties.md"
SCHEMA = pa.schema({"id": pa.int64()})


def spelled_text(name: str) -> str:
    return name.replace("*", "some")


@pytest.mark.parametrize("known", FOREIGN, ids=lambda each: each.name)
def test_a_property_of_another_format_is_never_ignored_in_silence(known):
    name = spelled_text(known.name)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for fine in known.fine:
            check_properties({name: spelled_text(fine).upper()})
            warn_of_foreign({name: spelled_text(fine).upper()})
        assert not heard
        if known.verdict is PropertyVerdict.REFUSED:
            with pytest.raises(
                InvalidInput, match=f"{known.format}'s, and lakelog does not obey it: "
            ) as error:
                check_properties({name: "other"})
            assert known.says and str(error.value).endswith(known.says)
            assert name not in kept_of_import({name: "other"})[0]
            return
        check_properties({name: "other"})
        warn_of_foreign({name: "other"})
    assert len(heard) == (known.verdict is PropertyVerdict.NO_EFFECT)
    assert all(known.says in str(each.message) and name in str(each.message) for each in heard)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("delta.APPENDonly", PropertyVerdict.REFUSED),
        ("delta.nosuch", PropertyVerdict.NO_EFFECT),
        ("delta.parquet.compression.codec", PropertyVerdict.NO_EFFECT),
        ("write.nosuch", PropertyVerdict.NO_EFFECT),
        ("history.expire.min-snapshots-to-keep", PropertyVerdict.REFUSED),
        ("hoodie.cleaner.commits.retained", PropertyVerdict.REFUSED),
        ("hoodie.nosuch", PropertyVerdict.NO_EFFECT),
    ],
)
def test_the_first_row_that_matches_counts(name, verdict):
    assert next(each for each in FOREIGN if each.matches(name)).verdict is verdict


def test_names_of_users_are_theirs():
    users = {
        name: "x"
        for name in ("deltas", "write", "history", "gc", "owner", "primaryKey", "option.a", "hudi.a")
    }
    check_properties(users)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_foreign(users)


def test_the_page_has_the_table():
    text = PAGE.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(("| Delta", "| Iceberg", "| Hudi"))]
    assert rows == list(page_rows())


def test_tables_are_created_and_altered_by_the_same_rule(tmp_path):
    catalog = Catalog(str(tmp_path))
    with pytest.raises(InvalidInput, match=r"delta\.appendOnly is Delta's"):
        catalog.create_table("t", SCHEMA, properties={"delta.appendOnly": "true"})
    with pytest.warns(ForeignPropertyWarning, match=r"commit\.retry\.num-retries is Iceberg's"):
        table = catalog.create_table(
            "t", SCHEMA, properties={"commit.retry.num-retries": "9", "gc.enabled": "true"}
        )
    assert table.properties == {"commit.retry.num-retries": "9", "gc.enabled": "true"}
    with pytest.raises(
        InvalidInput, match=r"history\.expire\.max-snapshot-age-ms .* lakelog\.maintenance\.keep-for"
    ):
        table.alter([{"change": "set-property", "key": "history.expire.max-snapshot-age-ms", "value": "1"}])
    with pytest.warns(ForeignPropertyWarning, match="lakelog.write.merge.mode"):
        table.alter([{"change": "set-property", "key": "write.merge.mode", "value": "copy-on-write"}])
    assert table.refresh().alter([{"change": "remove-property", "key": "gc.enabled"}]).version == 3


def test_a_table_that_has_a_refused_property_is_read_changed_and_cloned(tmp_path, monkeypatch):
    catalog = Catalog(str(tmp_path))
    with monkeypatch.context() as older:
        older.setattr(checking, "check_foreign", lambda given: None)
        table = catalog.create_table("t", SCHEMA, properties={"delta.appendOnly": "true", "a": "b"})
    table = table.alter([{"change": "set-property", "key": "a", "value": "c"}])
    assert table.properties == {"delta.appendOnly": "true", "a": "c"}
    assert catalog.clone("t", "copy").properties == table.properties
    table = table.alter([{"change": "remove-property", "key": "delta.appendOnly"}])
    assert table.properties == {"a": "c"}
