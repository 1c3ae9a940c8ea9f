"""A prefix of an S3 bucket as a store, through s3fs.

Requests go through s3fs's session but are plain S3 calls: its cat asks for the size first, its exclusive open
may overwrite, and its exceptions depend on the server. Failures are distinguished by the HTTP status alone. The
client resends by itself, so "taken" may be our own echo; the caller of put_if_absent settles that.
"""

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

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
from lakelog.log.stores.ranges import ObjectRange
from lakelog.log.stores.s3_input import S3Input
from lakelog.log.stores.s3_requests import counted_session

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60
ATTEMPTS_MAX = 3  # of the client library, for each request
CONNECTIONS_MAX = 64
PART_SIZE_BYTES = 32 * 1024 * 1024
DELETE_MAX = 1000
_NO_CREDENTIALS = {
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "ProfileNotFound",
}
_READS = {"get_object", "head_object", "list_objects_v2"}
_BROKEN = {
    "ClientPayloadError",
    "ContentLengthError",
    "IncompleteReadError",
    "ResponseParserError",
    "ResponseStreamingError",
    "TransferEncodingError",
}
_REFUSED = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "XAdminUserNotFound",
}
_ELSEWHERE = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}


class S3Store:
    """See ObjectStore. Credentials come from the AWS chain: environment, profile, container, instance."""

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
        self._path_style = path_style
        self._lock = threading.Lock()
        self._connected: tuple[int, Any] | None = None
        self._clock = StoreClock()

    @property
    def address(self) -> dict[str, str]:
        """Which server it is, as far as that was said: `endpoint`, without a user, a password or keys, and `region`."""
        parts = urlsplit(self._endpoint or "")
        found = {
            "endpoint": f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if self._endpoint else None,
            "region": self._region,
        }
        return {name: value for name, value in found.items() if value}

    def get(self, key: str) -> bytes | None:
        found = self._run(self._get, key)
        if isinstance(found, LakelogError):
            raise found
        return cast("bytes | None", found)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return self.get_ranges([ObjectRange(key) for key in keys])

    def get_ranges(self, ranges: Sequence[ObjectRange]) -> list[bytes | None]:
        found = self._run(self._get_parts, ranges)
        for result in found:
            if isinstance(result, LakelogError):
                raise result
        return cast("list[bytes | None]", found)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        try:
            # One request, never a multipart upload: only there the condition is sure to hold.
            self.call("put_object", Key=self._key(key), Body=data, IfNoneMatch="*")
            return True
        except Exception as error:
            if http_status(error) == 412:
                return False
            raise self.failure("create", key, error) from error

    def put(self, key: str, data: bytes) -> None:
        try:
            if len(data) < 2 * PART_SIZE_BYTES:
                self.call("put_object", Key=self._key(key), Body=data)
            else:
                path = f"{self._bucket}/{self._key(key)}"
                self._run(self._fs()._pipe_file, path, data, chunksize=PART_SIZE_BYTES)
        except Exception as error:
            raise self.failure("write", key, error) from error

    def copy_from(self, source: "S3Store", key: str, to: str) -> None:
        """Create or replace the object `to` with the content of another one of the same server, which copies it."""
        paths = f"{source._bucket}/{source._key(key)}", f"{self._bucket}/{self._key(to)}"
        try:
            self._run(self._fs()._cp_file, *paths)
        except FileNotFoundError:
            raise NotFound(f"{source.url}/{key} does not exist") from None
        except Exception as error:
            raise self.failure("copy to", to, error) from error

    def stamp_of(self, key: str) -> tuple[str | int, ...]:
        """See `copying`."""
        try:
            answer = self.call("head_object", key)
        except Exception as error:
            # A HEAD's answer has no words: what else a 404 is about, the next request of this caller finds out.
            if http_status(error) == 404:
                raise NotFound(f"{self.url}/{key} does not exist") from None
            raise self.failure("read", key, error) from error
        return str(answer["ETag"]), int(answer["ContentLength"])

    def list_stamps(self, prefix: str) -> Iterator[tuple[str, tuple[str | int, ...]]]:
        """See `copying`."""
        for page in self.pages(prefix, {}):
            for entry in page.get("Contents", ()):
                yield entry["Key"].removeprefix(self.prefix), (str(entry["ETag"]), int(entry["Size"]))

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return (key for key, _ in self.list_sizes(prefix, after))

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        for page in self.pages(prefix, {"StartAfter": self.prefix + after} if after else {}):
            for entry in page.get("Contents", ()):
                yield entry["Key"].removeprefix(self.prefix), int(entry["Size"])

    def list_folders(self, prefix: str) -> list[str]:
        before = self.prefix + prefix
        pages = self.pages(prefix, {"Delimiter": "/"})
        found = (entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", ()))
        return sorted({name.removeprefix(before).rstrip("/") for name in found} - {""})

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Abandoned uploads cannot be distinguished from those under way: a lifecycle rule of the bucket
        (AbortIncompleteMultipartUpload) removes them."""
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
            for failed in answer.get("Errors", ()):
                location = f"s3://{self._bucket}/{failed.get('Key')}"
                if failed.get("Code") == "AccessDenied":
                    raise PermissionDenied(
                        f"may not delete {location}; grant s3:DeleteObject there", location=location
                    )
                if failed.get("Code") != "NoSuchKey":
                    raise StorageError(
                        f"cannot delete {location}: {failed.get('Code')}; try again", location=location
                    )

    def open_input(self, key: str) -> BinaryIO:
        path = f"{self._bucket}/{self._key(key)}"
        try:
            # Opening asks for the size, so that a missing object shows here and not in the first read.
            opened = self._fs().open(path, "rb", block_size=4 * 1024 * 1024, cache_type="readahead")
            if opened.size is None:
                raise StorageError(
                    f"the store did not say how long {self.url}/{key} is; try again", location=path
                )
            read = S3Input(opened, ATTEMPTS_MAX, lambda error: self.failure("read", key, error))
            return cast(BinaryIO, read)
        except FileNotFoundError:
            raise NotFound(f"{self.url}/{key} does not exist") from None
        except Exception as error:
            raise self.failure("read", key, error) from error

    def now_us(self, near: str = "") -> int | None:
        """The server's time: the Date of its last answer, a refusal too. Without any, one HEAD asks for it."""
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

    def _fs(self) -> Any:
        """Return this process's s3fs; neither it nor its event loop survives a fork."""
        connected = self._connected
        if connected is None or connected[0] != os.getpid():
            with self._lock:
                connected = self._connected
                if connected is None or connected[0] != os.getpid():
                    connected = self._connected = (os.getpid(), self._connect())
        return connected[1]

    def _connect(self) -> Any:
        try:
            from s3fs import S3FileSystem
        except ImportError:
            raise Unsupported(f"{self.url} needs s3fs; install it with: pip install 'lakelog[s3]'") from None
        config: dict[str, Any] = {
            "connect_timeout": CONNECT_TIMEOUT_S,
            "read_timeout": READ_TIMEOUT_S,
            "retries": {"total_max_attempts": ATTEMPTS_MAX, "mode": "standard"},
            "max_pool_connections": CONNECTIONS_MAX,
            # Checksums that not every server knows; the log has hashes of its own.
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        }
        if self._path_style:
            config["s3"] = {"addressing_style": "path"}
        fs = S3FileSystem(
            endpoint_url=self._endpoint,
            client_kwargs={"region_name": self._region} if self._region else {},
            config_kwargs=config,
            session=counted_session(),
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        # One layer of resending: it counts, in the answer, whether there was an attempt before the last.
        fs.retries = 1
        return fs

    def _run(self, coroutine: Any, *arguments: Any, **named: Any) -> Any:
        from fsspec.asyn import sync

        return sync(self._fs().loop, coroutine, *arguments, **named)

    def call(self, operation: str, key: str | None = None, **arguments: Any) -> Any:
        """Send one plain S3 request about the bucket, or the object of `key`. Raises the client library's errors."""
        if key is not None:
            arguments["Key"] = self._key(key)
        return self._run(self._answer, operation, arguments)

    async def _answer(self, operation: str, arguments: dict[str, Any]) -> Any:
        """Return the server's answer to one request, and take note of its time, also where it refuses.

        A read whose answer broke off is retried, whatever the answer was going to be.
        """
        tried = 0
        while True:
            try:
                answer = await self._fs()._call_s3(operation, Bucket=self._bucket, **arguments)
            except Exception as error:
                self._learn_clock(_response(error))
                tried += 1
                if operation not in _READS or not _broke_off(error) or tried == ATTEMPTS_MAX:
                    raise
            else:
                self._learn_clock(answer)
                return answer

    async def _get(self, key: str, part: ObjectRange | None = None) -> bytes | None | LakelogError:
        """Return errors as values, so that one failed key does not leave its siblings running."""
        arguments = {"Key": self._key(key)}
        if part is not None and part.size is not None:
            arguments["Range"] = f"bytes={part.first}-{part.first + part.size - 1}"
        broken: Exception = StorageError("never asked", location=self.url)
        for _ in range(ATTEMPTS_MAX):
            try:
                answer = await self._answer("get_object", arguments)
            except Exception as error:
                if error_code(error) == "InvalidRange":
                    return b""  # the object is shorter
                # Only this says that the object is absent; a 404 may be about the bucket, the user or the address.
                return None if error_code(error) == "NoSuchKey" else self.failure("read", key, error)
            try:
                async with answer["Body"] as body:
                    return cast(bytes, await body.read())
            except Exception as error:
                broken = error  # the client resends what was refused, not what broke off
        return self.failure("read", key, broken)

    async def _get_parts(self, parts: Sequence[ObjectRange]) -> list[bytes | None | LakelogError]:
        return await asyncio.gather(*(self._get(part.key, part) for part in parts))

    def _learn_clock(self, answer: Any) -> None:
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date:
            try:
                server_us = int(parsedate_to_datetime(date).timestamp() * 1_000_000)
            except ValueError:
                return
            self._clock.learn(server_us)

    def failure(self, verb: str, key: str, error: Exception) -> LakelogError:
        """Return what a failure means, with the failure as its cause, also where it is not raised at once."""
        found = self._meaning(verb, key, error)
        if found is not error:
            found.__cause__ = error
        return found

    def _meaning(self, verb: str, key: str, error: Exception) -> LakelogError:
        """Quotes nothing of the server's own text, which could hold credentials."""
        if isinstance(error, LakelogError):
            return error
        location = f"{self.url}/{key}"
        status, code, name = http_status(error), error_code(error), type(_root(error)).__name__
        # An earlier attempt of the client library may have been applied before this answer.
        first_answer = _resent(error) == 0
        where = f" at {self._endpoint}" if self._endpoint else ""
        if name in _NO_CREDENTIALS:
            return PermissionDenied(
                f"cannot {verb} {location}: no usable AWS credentials ({name}); set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
                location=location,
            )
        if status == 404 and code == "NoSuchBucket":
            return StorageError(
                f"cannot {verb} {location}: there is no bucket {self._bucket!r}{where}; create it, or correct the "
                "location or the endpoint",
                location=location,
                without_effect=first_answer,
            )
        if code == "RequestTimeTooSkewed":
            return StorageError(
                f"cannot {verb} {location}: the clock of this host is too far from that of the store{where} ({code}); "
                "set it right",
                location=location,
                without_effect=first_answer,
            )
        if status == 301 or code in _ELSEWHERE:
            return StorageError(
                f"cannot {verb} {location}: the bucket is in another region ({code or status}); correct the region, "
                "or the endpoint",
                location=location,
                without_effect=first_answer,
            )
        if status in (401, 403) or code in _REFUSED:
            message = (
                f"may not {verb} {location}: the store refuses these credentials ({code or status}); check them, and "
                "grant s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket there"
            )
            if first_answer:
                return PermissionDenied(message, location=location)
            return StorageError(message, location=location)
        if status == 501:
            return StorageError(
                f"cannot {verb} {location}: the server{where} does not support it (501); use one that has conditional "
                "writes (If-None-Match)",
                location=location,
                without_effect=first_answer,
            )
        if status is None:
            return StorageError(
                f"cannot {verb} {location}: no answer from the store{where} ({name}); check the endpoint and the "
                "network, and try again",
                location=location,
            )
        if status == 404:
            return StorageError(
                f"cannot {verb} {location}: the server{where} answered {code or 404}, but not as an S3 server; "
                "check the endpoint",
                location=location,
                without_effect=first_answer,
            )
        return StorageError(
            f"cannot {verb} {location}: the store{where} answered {status} ({code}); try again",
            location=location,
            without_effect=first_answer and 400 <= status < 500 and status not in (408, 409, 412, 429),
        )


def _root(error: BaseException) -> BaseException:
    """Return the client library's own exception, which s3fs wraps in one that depends on the server."""
    seen = 0
    while error.__cause__ is not None and seen < 8:
        error = error.__cause__
        seen += 1
    return error


def _broke_off(error: BaseException) -> bool:
    """Return whether only the beginning of an answer came; the client library does not retry these."""
    return type(_root(error)).__name__ in _BROKEN


def _response(error: BaseException) -> dict[str, Any]:
    for candidate in (error, error.__cause__, _root(error)):
        response = getattr(candidate, "response", None)
        if isinstance(response, dict):
            return response
    return {}


def http_status(error: BaseException) -> int | None:
    """Return the status of the server's answer, None where there was none."""
    status = _response(error).get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status if isinstance(status, int) else None


def are_credentials_unusable(error: BaseException) -> bool:
    """Whether a refusal is about the credentials themselves, and not about what they may do."""
    return error_code(error) in _REFUSED or type(_root(error)).__name__ in _NO_CREDENTIALS


def error_code(error: BaseException) -> str:
    """Return S3's word for what failed, such as NoSuchKey; empty where the answer had none."""
    return str(_response(error).get("Error", {}).get("Code", ""))


def _resent(error: BaseException) -> int:
    return int(_response(error).get("ResponseMetadata", {}).get("RetryAttempts", 0))
