"""A prefix of a bucket of Google Cloud Storage, or of a container of Azure, as a store. obstore does the protocol.

Reads, deletes and plain puts are sent again after a lost or a 5xx answer. **A conditional put is sent once**; the
caller of put_if_absent settles a lost answer. See `docs/design/cloud-stores.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import quote, urlsplit

from lakelog.log.clocks import StoreClock, steady_clock_us
from lakelog.log.costs import asked, read, waiting
from lakelog.log.errors import InvalidInput, LakelogError, NotFound, StorageError, Unsupported
from lakelog.log.grammar import check_key, check_prefix
from lakelog.log.options import LogOptions
from lakelog.log.parallel import run_in_parallel
from lakelog.log.stores.cloud_client import CloudClient, azure_client, google_client
from lakelog.log.stores.cloud_errors import (
    REPEATABLE,
    NoAnswer,
    NoCredentials,
    answer_of,
    is_absent,
    is_taken,
    meaning,
)
from lakelog.log.stores.copying import Stamp
from lakelog.log.stores.ranges import ObjectRange
from lakelog.log.stores.s3_errors import error_code, http_status
from lakelog.log.stores.s3_input import S3Input
from lakelog.log.stores.store import ObjectStore

ATTEMPTS_MAX = 3
PAUSE_FIRST_S = 0.1
PART_SIZE_BYTES = 16 * 1024 * 1024
PARTS_AT_ONCE = 4
IN_PARTS_BYTES = 4 * PART_SIZE_BYTES
"""Objects of this size and larger are written in parts."""
LIST_PAGE = 1000
KEY_SIZE_MAX = 1024
"""Bytes of a key of Google, and characters of a key of Azure, with the store's prefix."""
DOCUMENT_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-cache"}
"""Without the second, Google lets public objects be read from caches for an hour."""
CLOCK_FOR_US = 15 * 60 * 1_000_000
"""The server is asked for its time again after this time."""

T = TypeVar("T")


class CloudStore:
    """See ObjectStore, StampedStore, DocumentStore and ServedStore."""

    is_bucket = True

    delete_max = 1
    """Objects that one request deletes."""
    lists_in_order = True
    """Whether pages come in the order of keys. If not, keys are sorted here."""

    def __init__(self, root: str, client: CloudClient, options: LogOptions | None = None) -> None:
        self.url = root
        self.client = client
        self._options = options or LogOptions()
        prefix = root.partition("://")[2].partition("/")[2]
        self.prefix = f"{prefix}/" if prefix else ""  # of all keys here, in the bucket
        self._host = urlsplit(client.endpoint).netloc.rpartition("@")[2]
        self._clock = StoreClock()
        self._clock_from_us: int | None = None

    @property
    def server(self) -> str:
        """The server's address, without keys."""
        return f"{urlsplit(self.client.endpoint).scheme}://{self._host}"

    def get(self, key: str) -> bytes | None:
        return self._get(ObjectRange(key))

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return self.get_ranges([ObjectRange(key) for key in keys])

    def get_ranges(self, ranges: Sequence[ObjectRange]) -> list[bytes | None]:
        for part in ranges:
            check_key(part.key)
        return self._side_by_side(self._get, ranges)

    def _get(self, part: ObjectRange) -> bytes | None:
        if part.size == 0:
            return b"" if self.get(part.key) is not None else None
        try:
            return self._read(part.key, None if part.size is None else (part.first, part.first + part.size))[
                0
            ]
        except Exception as error:
            if is_absent(error, self.client.words):
                return None
            if http_status(error) == 416:
                return b""  # the object is shorter
            raise self._failure("read", part.key, error) from error

    def _read(self, key: str, part: Any, tag: str | None = None) -> tuple[bytes, str, int]:
        """Return an object's bytes, or a part of them, with its tag and whole size."""
        options = {name: value for name, value in (("range", part), ("if_match", tag)) if value is not None}

        def ask(store: Any, path: str) -> tuple[bytes, str, int]:
            import obstore

            answer = obstore.get(store, path, options=cast(Any, options))
            meta = answer.meta
            data = answer.bytes().to_bytes()
            read(len(data))
            return data, str(meta["e_tag"] or ""), int(meta["size"])

        return self._send("get", key, ask)

    def unknown_server(self) -> str:
        return self.server if self.client.is_named else ""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        def ask(store: Any, path: str) -> None:
            import obstore

            # A single request, never in parts, because only it certainly holds the condition.
            obstore.put(store, path, data, mode="create", use_multipart=False)

        try:
            self._send("put_if_absent", key, ask, written=len(data), repeat=False)
        except Exception as error:
            if is_taken(error, self.client.words):
                return False
            raise self._failure("create", key, error) from error
        return True

    def put(self, key: str, data: bytes) -> None:
        is_large = len(data) >= IN_PARTS_BYTES

        def ask(store: Any, path: str) -> None:
            import obstore

            obstore.put(
                store,
                path,
                data,
                use_multipart=is_large,
                chunk_size=PART_SIZE_BYTES,
                max_concurrency=PARTS_AT_ONCE,
            )

        count = -(-len(data) // PART_SIZE_BYTES) + 2 if is_large else 1
        try:
            self._send("put", key, ask, written=len(data), count=count)
        except Exception as error:
            raise self._failure("write", key, error) from error

    def address_of(self, prefix: str) -> str:
        return "/".join(
            [self.server + urlsplit(self.client.endpoint).path.rstrip("/"), self.client.bucket]
            + [quote(part.strip("/")) for part in (self.prefix, prefix) if part]
        )

    def takes_document(self, key: str) -> bool:
        """Return whether a key can be as long as this key, and has no control characters. obstore refuses those."""
        try:
            check_key(key)
        except InvalidInput:
            return False
        return len((self.prefix + key).encode()) <= KEY_SIZE_MAX

    def put_document(self, key: str, data: bytes) -> str:
        def ask(store: Any, path: str) -> str:
            import obstore

            result = obstore.put(store, path, data, attributes=DOCUMENT_HEADERS, use_multipart=False)
            return _tag(result["e_tag"])

        try:
            return self._send("put", key, ask, written=len(data))
        except Exception as error:
            if http_status(error) == 409 and error_code(error) in self.client.words.one_name:
                raise Unsupported(
                    f"{self.url} cannot hold {key!r}: the account has a hierarchical namespace, with no objects at and "
                    "below one name; publish to another object store, or run lakelog serve"
                ) from error
            raise self._failure("write", key, error) from error

    def delete_document(self, key: str) -> None:
        self.delete([key])

    def list_tags(self, prefix: str) -> Iterator[tuple[str, str]]:
        return ((key, str(stamp[0])) for key, stamp in self._list(prefix, ""))

    def stamp_of(self, key: str) -> Stamp:
        def ask(store: Any, path: str) -> Stamp:
            import obstore

            return _stamp(obstore.head(store, path))

        try:
            return self._send("head", key, ask)
        except Exception as error:
            if http_status(error) == 404:
                # A HEAD's answer has no body, so only a GET shows whether the bucket is missing.
                self._get(ObjectRange(key, 0, 1))
                raise NotFound(f"{self.url}/{key} does not exist") from None
            raise self._failure("read", key, error) from error

    def list_stamps(self, prefix: str) -> Iterator[tuple[str, Stamp]]:
        return self._list(prefix, "")

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return (key for key, _ in self._list(prefix, after))

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        return ((key, int(stamp[1])) for key, stamp in self._list(prefix, after))

    def _list(self, prefix: str, after: str) -> Iterator[tuple[str, Stamp]]:
        """Yield the keys of `list_after` with their stamps.

        obstore lists whole folders, so the folder of the prefix is listed from just before the prefix on.
        """
        check_prefix(prefix)
        full_prefix, full_after = self.prefix + prefix, self.prefix + after if after else ""
        folder, _, name = full_prefix.rpartition("/")
        # obstore refuses the names `.` and `..`. Then the whole folder is listed.
        before_prefix = full_prefix[:-1] if name and name[:-1] not in (".", "..") else ""
        start = max(full_after, before_prefix, key=str.encode)
        entries = (
            _without_next_folder(self._in_order(folder, start))
            if self.lists_in_order
            else self._sorted(folder, start)
        )
        for path, stamp in entries:
            if path.startswith(full_prefix):
                if path.encode() > full_after.encode():
                    yield path.removeprefix(self.prefix), stamp
            elif path.encode() > full_prefix.encode():
                return

    def _in_order(self, folder: str, start: str) -> Iterator[tuple[str, Stamp]]:
        """Yield the names of a folder greater than `start`, page by page. A failed page is requested again."""
        attempt = 1
        while True:
            failure = None
            try:
                for entry in self._pages(folder, start):
                    # obstore shows an object a/b/, which stands for a folder, as a/b: too late, or beside a/b.
                    if str(entry["path"]).encode() > start.encode():
                        attempt, start = 1, str(entry["path"])
                        yield start, _stamp(entry)
            except LakelogError:
                raise
            except Exception as error:
                failure = answer_of("list", error, folder, attempt - 1)
            if failure is None:
                return
            self._pause_or_raise(failure, folder, attempt)
            attempt += 1

    def _sorted(self, folder: str, start: str) -> Iterator[tuple[str, Stamp]]:
        """Yield the names of a folder greater than `start`, after all of them were read and sorted."""
        attempt = 1
        while True:
            try:
                entries = [(str(entry["path"]), _stamp(entry)) for entry in self._pages(folder, start)]
            except LakelogError:
                raise
            except Exception as error:
                failure = answer_of("list", error, folder, attempt - 1)
            else:
                return iter(sorted(_without_folders(entries), key=lambda entry: entry[0].encode()))
            self._pause_or_raise(failure, folder, attempt)
            attempt += 1

    def _pause_or_raise(self, failure: Exception, folder: str, attempt: int) -> None:
        if attempt == ATTEMPTS_MAX or not _can_be_repeated(failure):
            raise self._failure("list", f"{folder}/".removeprefix(self.prefix), failure) from failure
        self._pause(attempt)

    def _pages(self, folder: str, after: str) -> Iterator[Any]:
        store = self._store()
        import obstore

        asked("list", self._host, f"{self.client.bucket}/{folder}")
        stream = obstore.list(store, folder or None, offset=after or None, chunk_size=LIST_PAGE)
        for page in stream:
            yield from page
            if len(page) == LIST_PAGE:
                asked("list", self._host, f"{self.client.bucket}/{folder}")

    def list_folders(self, prefix: str) -> list[str]:
        check_prefix(prefix)
        folder = (self.prefix + prefix).rstrip("/")

        def ask(store: Any, path: str) -> Any:
            import obstore

            return obstore.list_with_delimiter(store, folder or None)["common_prefixes"]

        try:
            folders = self._send("list", None, ask)
        except Exception as error:
            raise self._failure("list", prefix, error) from error
        return sorted({str(path).rstrip("/").rpartition("/")[2] for path in folders} - {""})

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield nothing. A rule of the bucket, or the service itself, removes the parts of abandoned uploads."""
        return iter(())

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        chunks = [keys[start : start + self.delete_max] for start in range(0, len(keys), self.delete_max)]
        self._side_by_side(self._delete, chunks)

    def _delete(self, keys: Sequence[str]) -> None:
        def ask(store: Any, path: str) -> None:
            import obstore

            obstore.delete(store, [self.prefix + key for key in keys])

        try:
            self._send("delete", keys[0], ask)
        except Exception as error:
            if http_status(error) != 404:
                raise self._failure("delete", keys[0], error) from error
            if len(keys) > 1:
                # It does not show whether the others are gone.
                self._side_by_side(self._delete, [[key] for key in keys])
            elif not is_absent(error, self.client.words):
                # A part of a batch has no code that obstore shows. A GET shows whether the bucket is missing.
                self._get(ObjectRange(keys[0], 0, 1))

    def open_input(self, key: str) -> BinaryIO:
        tag, size = self.stamp_of(key)

        def fetch(first: int, end: int) -> bytes:
            # An answer has to be whole within a time, so a large object takes several.
            parts = range(first, end, PART_SIZE_BYTES)
            return b"".join(fetch_part(start, min(start + PART_SIZE_BYTES, end)) for start in parts)

        def fetch_part(first: int, end: int) -> bytes:
            try:
                data = self._read(key, (first, end), f'"{tag}"')[0]
            except Exception as error:
                raise self._failure("read", key, error) from error
            if len(data) != end - first:
                raise StorageError(f"{self.url}/{key} ended early; try again", location=f"{self.url}/{key}")
            return data

        return cast(BinaryIO, S3Input(int(size), fetch))

    def now_us(self, near: str = "") -> int | None:
        """Return the server's time. obstore does not show an answer's Date, so a request of its own asks for it."""
        if self._clock_from_us is not None and steady_clock_us() - self._clock_from_us < CLOCK_FOR_US:
            known_us = self._clock.now_us()
            if known_us is not None:
                return known_us
        asked("head", self._host, "")
        try:
            date = self.client.server_date()
        except NoAnswer as error:
            raise self._failure("ask for the time of", near, error) from error
        try:
            server_us = int(parsedate_to_datetime(date).timestamp() * 1_000_000)
        except ValueError:
            return None
        self._clock.learn(server_us)
        self._clock_from_us = steady_clock_us()
        return self._clock.now_us()

    def _store(self) -> Any:
        return self.client.store()

    def _send(
        self,
        kind: str,
        key: str | None,
        ask: Callable[[Any, str], T],
        *,
        written: int = 0,
        count: int = 1,
        repeat: bool = True,
    ) -> T:
        """Send a request, again after failures that may pass. Raises errors that `cloud_errors` understands."""
        if key is not None:
            check_key(key)
        path = "" if key is None else self.prefix + key
        store = self._store()
        for attempt in range(1, ATTEMPTS_MAX + 1):
            asked(kind, self._host, f"{self.client.bucket}/{path}", count, written=written)
            try:
                return ask(store, path)
            except Exception as error:
                failure = answer_of(kind, error, path, attempt - 1)
            # Without credentials nothing was sent, so a conditional put may be sent then.
            is_safe = repeat or isinstance(failure, NoCredentials)
            if not is_safe or attempt == ATTEMPTS_MAX or not _can_be_repeated(failure):
                break
            self._pause(attempt)
        raise failure

    def _pause(self, attempt: int) -> None:
        waiting(self._options.sleep_s)(PAUSE_FIRST_S * 2.0 ** (attempt - 1) * (0.5 + self._options.random()))

    def _side_by_side(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        results: list[Any] = [None] * len(items)

        def run(position: int) -> None:
            results[position] = work(items[position])

        run_in_parallel([partial(run, position) for position in range(len(items))])
        return results

    def _failure(self, verb: str, key: str, error: Exception) -> LakelogError:
        endpoint = self.server if self.client.is_named else ""
        return meaning(
            verb, f"{self.url}/{key}", error, self.client.words, bucket=self.client.bucket, endpoint=endpoint
        )


class GoogleStore(CloudStore):
    """A bucket of Google Cloud Storage. See ObjectStore, CopyingStore and StampedStore."""

    def __init__(self, root: str, *, endpoint: str | None = None, options: LogOptions | None = None) -> None:
        bucket = root.removeprefix("gs://").partition("/")[0]
        super().__init__(root, google_client(bucket, endpoint), options)

    def can_copy_from(self, source: ObjectStore) -> bool:
        return isinstance(source, GoogleStore) and (source.client.endpoint, source.client.bucket) == (
            self.client.endpoint,
            self.client.bucket,
        )

    def copy_from(self, source: ObjectStore, key: str, to: str) -> None:
        assert isinstance(source, GoogleStore), "can_copy_from said so"
        check_key(key)

        def ask(store: Any, path: str) -> None:
            import obstore

            obstore.copy(store, source.prefix + key, path)

        try:
            self._send("copy", to, ask)
        except Exception as error:
            if is_absent(error, self.client.words):
                raise NotFound(f"{source.url}/{key} does not exist") from None
            raise self._failure("copy to", to, error) from error


class AzureStore(CloudStore):
    """A container of Azure Blob Storage, or of Data Lake Storage Gen2. See ObjectStore and StampedStore.

    A copy by the server may still be under way when its answer arrives, and obstore does not wait for it. So
    objects are copied through this process.
    """

    delete_max = 256
    lists_in_order = False
    """With a hierarchical namespace, a folder's objects come before names that only begin like it."""

    def __init__(self, root: str, *, endpoint: str | None = None, options: LogOptions | None = None) -> None:
        container, _, host = root.removeprefix("abfss://").partition("/")[0].partition("@")
        super().__init__(root, azure_client(container, host, endpoint), options)


def _without_folders(entries: list[tuple[str, Stamp]]) -> list[tuple[str, Stamp]]:
    """Return the entries without empty objects that stand for folders. Hadoop's ABFS makes these above its files."""
    folders = {path[:end] for path, _ in entries for end in range(len(path)) if path[end] == "/"}
    return [entry for entry in entries if int(entry[1][1]) > 0 or entry[0] not in folders]


def _without_next_folder(entries: Iterator[tuple[str, Stamp]]) -> Iterator[tuple[str, Stamp]]:
    """Yield the entries without empty objects that stand for the folder of the next entry."""
    held_back: tuple[str, Stamp] | None = None
    for entry in entries:
        if held_back is not None and not entry[0].startswith(f"{held_back[0]}/"):
            yield held_back
        held_back = entry if int(entry[1][1]) == 0 else None
        if held_back is None:
            yield entry
    if held_back is not None:
        yield held_back


def _stamp(meta: Any) -> Stamp:
    return _tag(meta["e_tag"]), int(meta["size"])


def _tag(text: str | None) -> str:
    return str(text or "").removeprefix("W/").strip('"')


def _can_be_repeated(failure: Exception) -> bool:
    if isinstance(failure, NoCredentials):
        return failure.may_pass
    return isinstance(failure, NoAnswer) or http_status(failure) in REPEATABLE
