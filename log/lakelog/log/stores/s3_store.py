"""A prefix of an S3 bucket as a store.

`BucketClient` sends requests, or s3fs if it knows more: see `s3_place`. Either resends reads, and s3fs also resends
conditional puts. So "taken" may be our own echo; the caller of put_if_absent settles that. Only the HTTP
status and S3's code distinguish failures.
"""

import re
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, cast
from urllib.parse import quote, urlsplit

from lakelog.log.clocks import StoreClock
from lakelog.log.errors import (
    InvalidInput,
    LakelogError,
    NotFound,
    PermissionDenied,
    StorageError,
    Unsupported,
)
from lakelog.log.grammar import check_key, check_prefix
from lakelog.log.stores.copying import Stamp
from lakelog.log.stores.ranges import ObjectRange
from lakelog.log.stores.s3_clients import S3Clients
from lakelog.log.stores.s3_errors import ONE_NAME, error_code, http_status, meaning, response_of
from lakelog.log.stores.s3_input import S3Input
from lakelog.log.stores.store import ObjectStore

PART_SIZE_BYTES = 32 * 1024 * 1024
DELETE_MAX = 1000
KEY_SIZE_MAX = 1024

END_BYTES = 64 * 1024
"""The bytes that are read from the end of a Parquet file on opening: most footers, and all of small files."""

GOOGLE_HOST = "storage.googleapis.com"
_DOCUMENT = {"ContentType": "application/json", "CacheControl": "no-cache"}
_CONTENT_RANGE = re.compile(r"bytes [0-9]+-([0-9]+)/([0-9]+)")


class S3Store:
    """A bucket as an ObjectStore, CopyingStore, StampedStore, DocumentStore and ServedStore.

    Credentials come from the AWS chain: environment, profile, container, instance.
    """

    is_bucket = True

    def __init__(
        self, root: str, *, endpoint: str | None = None, region: str | None = None, path_style: bool = False
    ) -> None:
        if not root.startswith("s3://"):
            raise InvalidInput(f"{root!r} is not of S3: open a bucket by open_store")
        self.url = root
        self._bucket, _, prefix = root.removeprefix("s3://").partition("/")
        self.prefix = f"{prefix}/" if prefix else ""  # of all keys here, in the bucket
        self._endpoint = endpoint
        self._region = region
        self.clients = S3Clients(self._bucket, endpoint, region, path_style)
        self._clock = StoreClock()
        self._date = ""

    @property
    def address(self) -> dict[str, str]:
        """The given settings of the server: `endpoint`, without user, password or keys, and `region`."""
        parts = urlsplit(self._endpoint or "")
        settings = {
            "endpoint": f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if self._endpoint else None,
            "region": self._region,
        }
        return {name: value for name, value in settings.items() if value}

    @property
    def client(self) -> str:
        """Which client sends the requests, and why if it is s3fs. Makes no request."""
        return self.clients.described()

    def unknown_server(self) -> str:
        if self.clients.is_of_aws():
            return ""
        return self.address.get("endpoint", "the address that AWS's settings name")

    def get(self, key: str) -> bytes | None:
        return self.get_ranges([ObjectRange(key)])[0]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return self.get_ranges([ObjectRange(key) for key in keys])

    def get_ranges(self, ranges: Sequence[ObjectRange]) -> list[bytes | None]:
        requests = [
            {"Key": self._key(object_range.key), **_range_of(object_range)} for object_range in ranges
        ]
        answers = self.clients.calls("get_object", requests)
        return [self._found(part, answer) for part, answer in zip(ranges, answers, strict=True)]

    def _found(self, part: ObjectRange, answer: Any) -> bytes | None:
        if not isinstance(answer, Exception):
            self._learn_clock(answer)
            data = cast(bytes, answer["Body"])
            is_whole = part.size is not None and answer["ResponseMetadata"]["HTTPStatusCode"] == 200
            return part.of(data) if is_whole else data
        self._learn_clock(response_of(answer))
        code = error_code(answer)
        if http_status(answer) == 416:
            return b""  # the object is shorter
        if code == "NoSuchKey":  # other 404s may be about the bucket, the user or the address
            return None
        raise self.failure("read", part.key, answer) from answer

    def put_if_absent(self, key: str, data: bytes) -> bool:
        host = urlsplit(self._endpoint or "").hostname or ""
        if host == GOOGLE_HOST or host.endswith(f".{GOOGLE_HOST}"):
            # Its S3 interface ignores the condition, so two writers could replace each other's commits.
            raise Unsupported(
                f"{self.url} cannot hold a log: Google's S3 interface has no condition for a put; use gs://{self._bucket}"
            )
        try:
            # A single request, never a multipart upload, because only it certainly holds the condition.
            self.call("put_object", key, Body=data, IfNoneMatch="*")
            return True
        except Exception as error:
            if http_status(error) == 412:
                return False
            raise self.failure("create", key, error) from error

    def put(self, key: str, data: bytes) -> None:
        try:
            if len(data) < 2 * PART_SIZE_BYTES:
                self.call("put_object", key, Body=data)
            else:
                files, path = self.clients.files(), f"{self._bucket}/{self._key(key)}"
                files.run(files.fs._pipe_file, path, data, chunksize=PART_SIZE_BYTES)
        except Exception as error:
            raise self.failure("write", key, error) from error

    def can_copy_from(self, source: ObjectStore) -> bool:
        return isinstance(source, S3Store) and source.address == self.address

    def copy_from(self, source: ObjectStore, key: str, to: str) -> None:
        assert isinstance(source, S3Store), "can_copy_from said so"
        paths = f"{source._bucket}/{source._key(key)}", f"{self._bucket}/{self._key(to)}"
        try:
            files = self.clients.files()
            files.run(files.fs._cp_file, *paths)
        except FileNotFoundError:
            raise NotFound(f"{source.url}/{key} does not exist") from None
        except Exception as error:
            raise self.failure("copy to", to, error) from error

    def stamp_of(self, key: str) -> Stamp:
        try:
            answer = self.call("head_object", key)
        except Exception as error:
            # A HEAD's answer has no body. If a 404 has another cause, this caller's next request shows it.
            if http_status(error) == 404:
                raise NotFound(f"{self.url}/{key} does not exist") from None
            raise self.failure("read", key, error) from error
        return str(answer["ETag"]), int(answer["ContentLength"])

    def list_stamps(self, prefix: str) -> Iterator[tuple[str, Stamp]]:
        for page in self.pages(prefix, {}):
            for entry in page.get("Contents", ()):
                yield entry["Key"].removeprefix(self.prefix), (str(entry["ETag"]), int(entry["Size"]))

    def address_of(self, prefix: str) -> str:
        aws = f"https://s3.{self._region}.amazonaws.com" if self._region else "https://s3.amazonaws.com"
        parts = urlsplit(self._endpoint or aws)
        host = parts.netloc.rpartition("@")[2]  # without a password
        base = parts.path.strip("/")
        if self.clients.path_style:
            path = [base, self._bucket, self.prefix, prefix]
        else:
            host, path = f"{self._bucket}.{host}", [base, self.prefix, prefix]
        return "/".join(
            [f"{parts.scheme}://{host}", *(quote(segment.strip("/")) for segment in path if segment)]
        )

    def takes_document(self, key: str) -> bool:
        return len((self.prefix + key).encode()) <= KEY_SIZE_MAX

    def put_document(self, key: str, data: bytes) -> str:
        try:
            answer = self.call("put_object", Key=self.prefix + key, Body=data, **_DOCUMENT)
        except Exception as error:
            if error_code(error) in ONE_NAME:
                raise Unsupported(
                    f"{self.url} cannot hold {key!r}: the server has no objects at and below one name; publish to "
                    "another object store, or run lakelog serve"
                ) from error
            raise self.failure("write", key, error) from error
        return str(answer["ETag"]).strip('"')

    def delete_document(self, key: str) -> None:
        # Deletes go singly, because a request for many is XML, which cannot contain control characters.
        try:
            self.call("delete_object", Key=self.prefix + key)
        except Exception as error:
            raise self.failure("delete", key, error) from error

    def list_tags(self, prefix: str) -> Iterator[tuple[str, str]]:
        return ((key, str(stamp[0]).strip('"')) for key, stamp in self.list_stamps(prefix))

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return (key for key, _ in self.list_sizes(prefix, after))

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        for page in self.pages(prefix, {"StartAfter": self.prefix + after} if after else {}):
            for entry in page.get("Contents", ()):
                yield entry["Key"].removeprefix(self.prefix), int(entry["Size"])

    def list_folders(self, prefix: str) -> list[str]:
        full_prefix = self.prefix + prefix
        pages = self.pages(prefix, {"Delimiter": "/"})
        folder_prefixes = (entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", ()))
        return sorted({name.removeprefix(full_prefix).rstrip("/") for name in folder_prefixes} - {""})

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield nothing, because abandoned uploads cannot be distinguished from those under way.

        A lifecycle rule of the bucket (AbortIncompleteMultipartUpload) removes them.
        """
        return iter(())

    def pages(self, prefix: str, arguments: dict[str, str]) -> Iterator[Any]:
        check_prefix(prefix)
        arguments = {"Prefix": self.prefix + prefix, **arguments}
        while True:
            try:
                page = self.call("list_objects_v2", **arguments)
            except Exception as error:
                raise self.failure("list", prefix, error) from error
            yield page
            if not page.get("IsTruncated"):
                return
            arguments["ContinuationToken"] = page["NextContinuationToken"]

    def delete(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), DELETE_MAX):
            names = [{"Key": self._key(key)} for key in keys[start : start + DELETE_MAX]]
            try:
                answer = self.call("delete_objects", Delete={"Objects": names, "Quiet": True})
            except Exception as error:
                raise self.failure("delete", keys[start], error) from error
            for error_entry in answer.get("Errors", ()):
                location = f"s3://{self._bucket}/{error_entry.get('Key')}"
                if error_entry.get("Code") == "AccessDenied":
                    raise PermissionDenied(
                        f"may not delete {location}; grant s3:DeleteObject there", location=location
                    )
                if error_entry.get("Code") != "NoSuchKey":
                    raise StorageError(
                        f"cannot delete {location}: {error_entry.get('Code')}; try again", location=location
                    )

    def open_input(self, key: str) -> BinaryIO:
        # A missing object shows here, not in the first read. Parquet readers begin at the end, so one request
        # reads its bytes with the size.
        end = b""
        if key.endswith(".parquet"):
            etag, size, end = self._end_of(key)
        else:
            etag, size = cast(tuple[str, int], self.stamp_of(key))

        def fetch(first: int, end: int) -> bytes:
            try:
                part = {"Range": f"bytes={first}-{end - 1}", "IfMatch": etag}
                answer = self.call("get_object", key, **part)
                data = cast(bytes, answer["Body"])
                if answer["ResponseMetadata"]["HTTPStatusCode"] == 200:
                    data = data[first:end]
                if len(data) != end - first:
                    raise StorageError(
                        f"{self.url}/{key} ended early; try again", location=f"{self.url}/{key}"
                    )
                return data
            except Exception as error:
                raise self.failure("read", key, error) from error

        return cast(BinaryIO, S3Input(size, fetch, end))

    def _end_of(self, key: str) -> tuple[str, int, bytes]:
        """Return an object's tag, size and last bytes. Raises NotFound if there is none."""
        try:
            answer = self.call("get_object", key, Range=f"bytes=-{END_BYTES}")
        except Exception as error:
            code = error_code(error)
            if code == "NoSuchKey":
                raise NotFound(f"{self.url}/{key} does not exist") from None
            if http_status(error) not in (416, 501):
                raise self.failure("read", key, error) from error
            answer = {}  # an empty object has no last bytes, and not every server can count from the end
        size = _whole_size(answer)
        if size is None:
            etag, size = cast(tuple[str, int], self.stamp_of(key))
            return etag, size, b""
        end = cast(bytes, answer["Body"])[-END_BYTES:]
        if len(end) != min(size, END_BYTES):
            raise StorageError(f"{self.url}/{key} ended early; try again", location=f"{self.url}/{key}")
        return str(answer["ETag"]), size, end

    def now_us(self, near: str = "") -> int | None:
        """Return the server's time from its last answer, even a refusal. If there is none, makes a HEAD."""
        known_us = self._clock.now_us()
        if known_us is not None:
            return known_us
        try:
            self.call("head_object", Key=self.prefix + (near or "_log/latest.json"))
        except Exception as error:
            if http_status(error) is None:
                raise self.failure("ask for the time of", near or "_log/latest.json", error) from error
        return self._clock.now_us()

    def _key(self, key: str) -> str:
        check_key(key)
        return self.prefix + key

    def call(self, operation: str, key: str | None = None, **arguments: Any) -> Any:
        """Send a plain S3 request about the bucket, or the object of `key`. Raises the client library's errors.

        Records the server's time, even from a refusal.
        """
        if key is not None:
            arguments["Key"] = self._key(key)
        try:
            answer = self.clients.call(operation, arguments)
        except Exception as error:
            self._learn_clock(response_of(error))
            raise
        self._learn_clock(answer)
        return answer

    def _learn_clock(self, answer: Any) -> None:
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date and (date != self._date or self._clock.now_us() is None):
            try:
                server_us = int(parsedate_to_datetime(date).timestamp() * 1_000_000)
            except ValueError:
                return
            self._date = date
            self._clock.learn(server_us)

    def failure(self, verb: str, key: str, error: Exception) -> LakelogError:
        """Return a failure's meaning, with the failure as its cause, even if it is not raised at once."""
        lakelog_error = meaning(
            verb, f"{self.url}/{key}", error, bucket=self._bucket, endpoint=self._endpoint
        )
        if lakelog_error is not error:
            lakelog_error.__cause__ = error
        return lakelog_error


def _whole_size(answer: Any) -> int | None:
    """Return the whole size of an object whose end was requested; None if the answer does not show it.

    Also None if the answer has another part, because some servers take the last bytes for the first.
    """
    if "ETag" not in answer:
        return None
    if answer["ResponseMetadata"]["HTTPStatusCode"] == 200:
        return len(answer["Body"])
    part = _CONTENT_RANGE.fullmatch(str(answer.get("ContentRange", "")))
    return int(part[2]) if part is not None and int(part[1]) == int(part[2]) - 1 else None


def _range_of(part: ObjectRange) -> dict[str, str]:
    return {} if part.size is None else {"Range": f"bytes={part.first}-{part.first + part.size - 1}"}
