"""A Delta table on S3 is copied by the server, or its files are adopted once it is gone."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests import s3_servers

from lakelog.catalog import Catalog
from lakelog.catalog.formats.imports.claims import CLAIM
from lakelog.log.errors import InvalidInput
from lakelog.log.stores import open_store
from lakelog.log.stores.s3_store import S3Store
from lakelog.testing.moto_server import S3Server

pytestmark = pytest.mark.s3


@pytest.fixture(scope="module", params=s3_servers.NAMES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[S3Server, str]]:
    with s3_servers.running(request.param, tmp_path_factory.mktemp("s3") / "objects") as running_pair:
        yield running_pair


def test_files_are_copied_by_the_server_and_others_adopted(
    server: tuple[S3Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, place = server[0].options, f"s3://{server[1]}/{uuid.uuid4().hex}"
    source = tmp_path / "delta"
    for start in (0, 5):
        rows = pa.table({"id": range(start, start + 5), "kind": [f"a b+{start}"] * 5})
        write_deltalake(source, rows, partition_by=["kind"], mode="append")
    store = open_store(place, options)
    for path in (path for path in source.rglob("*") if path.is_file()):
        store.put(f"delta/{path.relative_to(source).as_posix()}", path.read_bytes())
    catalog = Catalog(f"{place}/w", options=options)
    by_server: list[str] = []
    replaced_texts: list[str] = []
    copy_from = S3Store.copy_from

    def counted(self: S3Store, other: S3Store, key: str, to: str) -> None:
        by_server.append(key)
        copy_from(self, other, key, to)
        if not replaced_texts:
            replaced_texts.append(key)
            data = bytearray(other.get(key) or b"")
            data[len(data) // 4] ^= 1
            other.put(key, bytes(data))

    monkeypatch.setattr(S3Store, "copy_from", counted)
    with pytest.raises(InvalidInput, match="was replaced since the source was read"):
        catalog.import_table(f"{place}/delta", "copied", format="delta", copy=True)
    name = f"delta/{replaced_texts[0].partition('/delta/')[2]}"
    store.put(name, (source / name.removeprefix("delta/")).read_bytes())
    by_server.clear()
    catalog.import_table(f"{place}/delta", "copied", format="delta", copy=True)
    assert len(by_server) == 2
    catalog.import_table(f"{place}/delta", "t", format="delta")
    store.delete(list(store.list_after("delta/_delta_log/")))
    assert catalog.adopt_files("t", dry_run=False).files == 2
    table = catalog.load_table("t")
    table.overwrite(table.to_arrow())
    catalog.expire("t", retain_last=1, dry_run=False)
    removed_report = catalog.vacuum("t", older_than=dt.timedelta(0), dry_run=False)
    assert [each.files for each in removed_report if each.kind == "adopted-files"] == [2]
    assert list(store.list_after("delta/")) == [f"delta/{CLAIM}"]
    with pytest.raises(InvalidInput, match="were adopted by the table at"):
        catalog.import_table(f"s3a{place.removeprefix('s3')}//delta/", "other", format="parquet")
    for name in ("copied", "t"):
        found_rows = catalog.load_table(name).scan(["id"]).to_arrow()["id"].to_pylist()
        assert sorted(found_rows) == list(range(10)), name
