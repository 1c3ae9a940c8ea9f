"""Links and pipes that another user has put into a warehouse that is a folder."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog
from lakelog.log import LakelogError, LocalStore, NotFound, PermissionDenied, wait_for_background
from lakelog.log.stores import local_links

SCHEMA = pa.schema([("id", pa.int64())])
ROW = pa.table({"id": [1]}, schema=SCHEMA)


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """All links are of a user who is not trusted."""
    monkeypatch.setattr(local_links, "trusted_users", lambda root: {-1})
    monkeypatch.setattr("lakelog.log.stores.local_store.trusted_users", lambda root: {-1})


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    catalog = Catalog(str(tmp_path))
    found = {}
    for name in ("forger", "victim"):
        catalog.create_namespace(name)
        catalog.create_table(f"{name}.t", SCHEMA).append(ROW).append(ROW).append(ROW)
        catalog.expire(f"{name}.t", retain_last=1, dry_run=False)
        found[name] = Path(catalog.load_table(f"{name}.t").location)
    return found


def linked(tables: dict[str, Path], part: str) -> None:
    """Make a folder of the forger's table a link to that of the victim's."""
    for path in tables.values():
        (path / part).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(tables["forger"] / part)
    os.symlink(tables["victim"] / part, tables["forger"] / part)


@pytest.mark.parametrize("part", ["data", "_log/manifests", "_log/snapshots", "_log/bases", "_log"])
def test_nothing_is_deleted_or_written_behind_the_link_of_another_user(
    tmp_path: Path, tables: dict[str, Path], foreign: None, part: str
) -> None:
    wait_for_background()
    linked(tables, part)
    data_before = {path: path.read_bytes() for path in tables["victim"].rglob("*") if path.is_file()}
    catalog = Catalog(str(tmp_path))
    for work in (
        lambda: catalog.expire("forger.t", retain_last=1, dry_run=False),
        lambda: catalog.vacuum("forger.t", dry_run=False),
        lambda: catalog.drop_table("forger.t", purge=True),
        lambda: catalog.fsck(repair=True),
    ):
        with contextlib.suppress(LakelogError):
            work()
    assert {path: path.read_bytes() for path in tables["victim"].rglob("*") if path.is_file()} == data_before
    assert Catalog(str(tmp_path)).load_table("victim.t").scan().to_arrow().num_rows == 3


def test_links_of_this_user_are_followed(tmp_path: Path) -> None:
    for name in ("root/a", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    os.symlink(tmp_path / "elsewhere", tmp_path / "root/a/b")
    store = LocalStore(str(tmp_path / "root"))
    assert store.put_if_absent("a/b/c", b"x")
    assert (list(store.list_after("")), store.list_folders("a/")) == (["a/b/c"], ["b"])
    store.delete(["a/b/c", "a/x/y", "a/b/c"])
    assert list(store.list_after("")) == []


def test_a_link_of_another_user_is_refused_by_name(tmp_path: Path, foreign: None) -> None:
    (tmp_path / "root").mkdir()
    os.symlink(tmp_path, tmp_path / "root/b")
    os.symlink(tmp_path / "root", tmp_path / "root/c")
    store = LocalStore(str(tmp_path / "root"))
    for work in (
        lambda: store.put_if_absent("b/c", b"x"),
        lambda: store.put("b/c", b"x"),
        lambda: store.delete(["b/c"]),
    ):
        with pytest.raises(PermissionDenied, match=r"b is a link of the user \d+"):
            work()
    # Two links to the folder that they are in are more paths than there is time for.
    assert list(store.list_after("")) == list(store.list_after("b/")) == store.list_folders("") == []


def test_what_is_no_file_is_no_object(tmp_path: Path) -> None:
    """A reader would wait for ever at the end of a pipe."""
    os.mkfifo(tmp_path / "pipe")
    os.symlink("/dev/zero", tmp_path / "device")
    store = LocalStore(str(tmp_path))
    for key in ("pipe", "device"):
        assert store.get(key) is None
        with pytest.raises(NotFound, match="does not exist"):
            store.open_input(key)
    assert list(store.list_after("")) == []
    store.put("pipe", b"x")
    assert store.get("pipe") == b"x"
