"""Bad places and bad days: one clear error that names the thing and the next step."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import s3_servers
from tests.integration.store.sums import Sum

from lakelog.log import (
    CommitUnknown,
    Draft,
    InvalidInput,
    LocalStore,
    Log,
    LogOptions,
    NotFound,
    PermissionDenied,
    StorageError,
    canonical_url,
    open_store,
)
from lakelog.log.clocks import host_clock_us
from lakelog.log.stores.s3_store import S3Store
from lakelog.testing.moto_server import S3Server

PATIENT = LogOptions(sleep_s=lambda seconds: None)


def failing(number: int) -> Any:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def create(store: LocalStore) -> Any:
    return Log(store, "t", Sum(), options=PATIENT).create(Draft(events=({"n": 1},)), log_id="l")


def test_a_file_system_without_hard_links_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (errno.EPERM, errno.ENOTSUP):
        monkeypatch.setattr(os, "link", failing(number))
        with pytest.raises(StorageError, match="no hard links.*another file system, or S3") as error:
            create(LocalStore(str(tmp_path)))
        assert error.value.without_effect and str(tmp_path) in str(error.value)
        assert list(tmp_path.rglob("*.json")) == [] and list(tmp_path.rglob(".lakelog-tmp-*")) == []


def test_a_full_disk_is_named_and_nothing_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(str(tmp_path))
    for call in ("write", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing(errno.ENOSPC))
            with pytest.raises(StorageError, match="No space left on device.*free some space"):
                create(store)
    assert list(tmp_path.rglob(".lakelog-tmp-*")) == []
    with pytest.raises(NotFound):
        Log(store, "t", Sum()).load()
    assert create(store).version == 1


def test_a_commit_whose_folder_could_not_be_synced_is_settled_by_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(str(tmp_path))
    create(store)
    log = Log(store, "t", Sum(), options=PATIENT)
    view = log.load()
    with monkeypatch.context() as patch:
        patch.setattr("lakelog.log.stores.local_store._sync", failing(errno.EIO))
        change = log.commit(view, lambda view, passed: Draft(events=({"n": 1},)), commit_id="c")
    assert change.version == 2


def test_a_read_only_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def denied_number(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", denied_number)
    with pytest.raises(PermissionDenied, match=f"may not write {tmp_path}.*give this user the right"):
        create(LocalStore(str(tmp_path)))


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", failing(errno.EACCES))
    with pytest.raises(PermissionDenied, match="may not read"):
        LocalStore(str(tmp_path)).get("a")


def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("not a folder")
    with pytest.raises(StorageError, match="lake.*remove or rename the file that stands in its way"):
        create(LocalStore(str(tmp_path / "lake")))


def test_leftovers_of_a_crash_are_never_listed(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("a/1", b"x")
    (tmp_path / "a" / ".lakelog-tmp-abc").write_bytes(b"torn")
    assert list(store.list_after("")) == ["a/1"]


def test_what_a_dead_process_left_half_made_is_distinguished_from_what_a_living_one_is_making(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other_stores = LocalStore(str(tmp_path)), LocalStore(str(tmp_path))
    store.put("a/1", b"x")
    (tmp_path / "a" / ".lakelog-tmp-abc").write_bytes(b"torn")
    seen_pairs: list[list[tuple[str, int]]] = []
    link = os.link

    def looking(source: str, target: str) -> None:
        assert os.path.basename(source) in os.listdir(tmp_path / "a")
        seen_pairs.append(list(other_stores.list_leftovers("a/")))
        link(source, target)

    monkeypatch.setattr(os, "link", looking)
    assert store.put_if_absent("a/2", b"y")
    assert seen_pairs == [[("a/.lakelog-tmp-abc", 4)]]
    other_stores.delete(["a/.lakelog-tmp-abc"])
    assert list(other_stores.list_leftovers("")) == [] and sorted(os.listdir(tmp_path / "a")) == ["1", "2"]


@pytest.mark.parametrize("by", ["link", "replace"])
def test_a_writer_that_loses_a_temporary_file_to_a_cleaner_creates_it_again(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, taken_texts = getattr(os, by), list[str]()

    def stolen(source: str, target: str) -> None:
        if not taken_texts:
            taken_texts.append(source)
            os.unlink(source)
        place(source, target)

    monkeypatch.setattr(os, by, stolen)
    store = LocalStore(str(tmp_path))
    put = {"link": store.put_if_absent, "replace": store.put}[by]
    put("a/1", b"x")
    assert taken_texts and store.get("a/1") == b"x" and os.listdir(tmp_path / "a") == ["1"]


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("file:/x", "/x"),
        ("file:///x/y%20z/", "/x/y z"),
        ("/x//y/", "/x/y"),
        ("s3a://b/p/", "s3://b/p"),
        ("s3://b", "s3://b"),
        ("s3://b//p//q/", "s3://b/p/q"),
        ("memory://m", "memory://m"),
        ("/a:b", "/a:b"),
    ],
)
def test_a_location_has_one_spelling(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical
    assert canonical_url(canonical) == canonical


@pytest.mark.parametrize(
    "url", ["", "hdfs://host/x", "s3://", "s3:///key", "file://host/x", "file:x", "a\0b"]
)
def test_a_location_of_no_known_kind_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        canonical_url(url)


def test_a_relative_location_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert canonical_url("lake") == f"{tmp_path}/lake"


def test_an_unknown_option_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="pace.*known are"):
        open_store(str(tmp_path), {"pace": "x"})
    with pytest.raises(InvalidInput, match="access_key.*credentials are no options"):
        open_store(str(tmp_path), {"access_key": "x"})
    with pytest.raises(InvalidInput, match="fsync"):
        open_store(str(tmp_path), {"fsync": "perhaps"})


SERVERS = [pytest.param(name, marks=pytest.mark.s3) for name in s3_servers.NAMES]
CHECKING = [pytest.param(name, marks=pytest.mark.s3) for name in s3_servers.NAMES if name != "moto"]


@pytest.fixture(scope="module", params=SERVERS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[S3Server, str]]:
    with s3_servers.running(request.param, tmp_path_factory.mktemp("s3") / "objects") as running_pair:
        yield running_pair


@pytest.fixture(scope="module", params=CHECKING)
def strict_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[S3Server, str]]:
    """A server that checks credentials; moto takes any."""
    with s3_servers.running(request.param, tmp_path_factory.mktemp("s3") / "objects") as running_pair:
        yield running_pair


def test_a_missing_bucket_is_named(server: tuple[S3Server, str]) -> None:
    store = open_store("s3://there-is-no-such-bucket-of-ours/x", server[0].options)
    log = Log(store, "t", Sum(), options=PATIENT)
    for ask in (log.load, lambda: log.create(Draft(), log_id="l"), lambda: list(store.list_after("x"))):
        with pytest.raises(StorageError, match="no bucket 'there-is-no-such-bucket-of-ours'.*create it"):
            ask()


@pytest.mark.parametrize("key", ["AKIAWRONG", None])
def test_wrong_credentials_are_refused_without_being_repeated(
    strict_server: tuple[S3Server, str], monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    server = strict_server
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key or server[0].access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret-and-wrong")
    store = open_store(f"s3://{server[1]}/x", server[0].options)
    for ask in (
        lambda: store.get("a"),
        lambda: store.put_if_absent("a", b""),
        lambda: list(store.list_after("")),
    ):
        with pytest.raises(PermissionDenied, match="refuses these credentials") as error:
            ask()
        assert os.environ["AWS_ACCESS_KEY_ID"] not in str(error.value) and "very-secret" not in str(
            error.value
        )


def test_no_credentials_at_all_are_named(
    server: tuple[S3Server, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(PermissionDenied, match="no usable AWS credentials.*AWS_ACCESS_KEY_ID"):
        open_store(f"s3://{server[1]}/x", server[0].options).get("a")


@pytest.mark.s3
def test_an_endpoint_that_does_not_answer_is_named_and_a_commit_there_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    store = open_store("s3://lake/x", {"endpoint": "http://127.0.0.1:9", "path_style": "true"})
    with pytest.raises(
        StorageError, match=r"no answer from the store at http://127\.0\.0\.1:9.*check the endpoint"
    ):
        store.get("a")
    log = Log(store, "t", Sum(), options=LogOptions(sleep_s=lambda seconds: None, put_tries=1))
    with pytest.raises(StorageError, match="cannot ask for the time"):
        log.create(Draft(), log_id="l")  # it needs the store's time, so nothing was put
    assert isinstance(store, S3Store)
    store._clock.learn(host_clock_us())
    with pytest.raises(CommitUnknown, match="retry with the same commit id"):
        log.create(Draft(), log_id="l")
