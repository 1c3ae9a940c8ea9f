"""A source with two files, and what happens to it: it ends, its files are adopted, and are needed no more."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelog.catalog import Catalog, Vacuumed
from lakelog.log.errors import InvalidInput, StorageError, Unsupported

NOW = dt.timedelta(0)


def source_with_two_files(folder: Path) -> Path:
    """Make a Delta table with two files of five rows, each in a folder of its own."""
    for kind in ("a", "b"):
        rows = pa.table({"id": range(5), "kind": [kind] * 5})
        write_deltalake(folder, rows, partition_by=["kind"], mode="append")
    return folder


def imported(folder: Path, source: Path) -> Catalog:
    catalog = Catalog(folder / "w")
    catalog.import_table(source, "t", format="delta")
    return catalog


def end(source: Path) -> None:
    shutil.move(source / "_delta_log", source.parent / f"{source.name}_log")


def files(source: Path) -> set[str]:
    return {path.name for path in source.rglob("*.parquet")}


def let_go(catalog: Catalog, name: str = "t") -> list[Vacuumed]:
    """Rewrite the files, expire the versions that had them, and vacuum."""
    catalog.load_table(name).overwrite(catalog.load_table(name).to_arrow())
    catalog.expire(name, retain_last=1, dry_run=False)
    return adopted(catalog.vacuum(name, older_than=NOW, dry_run=False))


def adopted(found: Sequence[Vacuumed]) -> list[Vacuumed]:
    return [each for each in found if each.kind == "adopted-files"]


def refused(catalog: Catalog, source: Path) -> str:
    """Return why nothing is adopted, and check that nothing has changed."""
    version_before = catalog.load_table("t").version
    with pytest.raises((InvalidInput, Unsupported, StorageError)) as caught:
        catalog.adopt_files("t", dry_run=False)
    assert catalog.load_table("t").version == version_before and len(files(source)) == 2
    return str(caught.value)


def during(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, happens: Callable[[], object]) -> None:
    """Let something happen right before a function is called for the first time."""
    function = getattr(owner, name)
    results: list[bool] = []

    def slow(*given: Any, **named: Any) -> Any:
        if not results:
            results.append(True)
            happens()
        return function(*given, **named)

    monkeypatch.setattr(owner, name, slow)
