"""A tree of JSON objects in a bucket, which a client reads as a REST catalog by plain GETs.

Rule: a path is what a client asks for, decoded: it may hold the control character between the parts of a namespace,
which no key of a log may have. It must not know what the objects say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from lakelog.catalog.core.logs import Places, check_not_own
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.grammar import PUBLISHED_FOLDER
from lakelog.log.stores.s3_errors import error_code
from lakelog.log.stores.s3_store import S3Store

KEY_SIZE_MAX = 1024
"""Bytes of a key in S3."""
_TYPE = {"ContentType": "application/json", "CacheControl": "no-cache"}
_ONE_NAME = {
    *(
        "ExistingObjectIsDirectory",
        "ObjectParentIsFile",
        "ErrDirectoryNotEmpty",
        "DirectoryObjectContainsData",
    ),
    *(
        "ObjectExistsAsPrefix",
        "XMinioObjectExistsAsDirectory",
        "XMinioObjectExistsAsPrefix",
        "XMinioParentIsObject",
    ),
}
"""What servers over folders answer where an object is to be at and below one name: versitygw, MinIO."""


class BucketTree:
    """The objects below a place in a bucket. Safe to share between threads."""

    def __init__(self, places: Places, url: str, options: Mapping[str, str]) -> None:
        """`options` are those of `places`. Makes no request.

        InvalidInput for a place of lakelog's own but `_rest/` in the warehouse, and for one that is no bucket's.
        """
        location = places.location(url)
        if location != PUBLISHED_FOLDER:
            if not location:
                raise InvalidInput(
                    f"{url} is the warehouse itself: choose a separate place, or {PUBLISHED_FOLDER}/ in it"
                )
            check_not_own(url)
        store, prefix = places.open(location)
        self.url = places.url(location)
        if not isinstance(store, S3Store):
            raise InvalidInput(
                f"{self.url} cannot hold a published catalog, whose objects lie at and below one name: give an s3:// "
                "URL, or run lakelog serve"
            )
        self._store = store
        self._prefix = f"{prefix}/" if prefix else ""
        self._options = options
        self._put: dict[str, tuple[str, str]] = {}

    @property
    def uri(self) -> str:
        """What clients are given, as the address of the catalog."""
        bucket, _, prefix = self.url.removeprefix("s3://").partition("/")
        region = self._options.get("region")
        aws = f"https://s3.{region}.amazonaws.com" if region else "https://s3.amazonaws.com"
        parts = urlsplit(self._options.get("endpoint") or aws)
        host = parts.netloc.rpartition("@")[2]  # without a password
        base = parts.path.strip("/")
        if self._options.get("path_style", "false").lower() in ("true", "on"):
            path = [base, bucket, prefix]
        else:
            host, path = f"{bucket}.{host}", [base, prefix]
        return "/".join([f"{parts.scheme}://{host}", *(quote(each) for each in path if each)])

    def takes(self, path: str) -> bool:
        """Return whether a key can be as long as this path's."""
        return len(self._key(path).encode()) <= KEY_SIZE_MAX

    def digest_of(self, data: bytes) -> str:
        """Return what S3 has as the ETag of an object of these bytes, unless the bucket is encrypted by KMS."""
        return hashlib.md5(data, usedforsecurity=False).hexdigest()

    def digests(self, top: str) -> dict[str, str]:
        """Return the digests of the objects whose paths begin with `top`, by path. One LIST for every 1000.

        In a bucket that is encrypted by KMS they are right for what was put here alone: any other object seems changed.
        """
        found = {}
        for page in self._store.pages(f"{self._prefix}{top}", {}):
            for entry in page.get("Contents", ()):
                path, etag = entry["Key"].removeprefix(self._key("")), entry["ETag"].strip('"')
                put, digest = self._put.get(path, ("", ""))
                found[path] = digest if etag == put else etag
        return found

    def get(self, path: str) -> bytes | None:
        return self._store.get(f"{self._prefix}{path}")

    def create(self, path: str, data: bytes) -> bool:
        """Create an object; False where there is one."""
        return self._store.put_if_absent(f"{self._prefix}{path}", data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object. Unsupported where the server cannot hold it beside those below its name."""
        answer = self._call("write", "put_object", path, Body=data, **_TYPE)
        self._put[path] = answer["ETag"].strip('"'), self.digest_of(data)

    def delete(self, path: str) -> None:
        # One by one: a request for many is XML, which cannot hold the control character.
        self._call("delete", "delete_object", path)

    def _key(self, path: str) -> str:
        return f"{self._store.prefix}{self._prefix}{path}"

    def _call(self, verb: str, operation: str, path: str, **arguments: Any) -> Any:
        try:
            return self._store.call(operation, Key=self._key(path), **arguments)
        except Exception as error:
            if verb == "write" and error_code(error) in _ONE_NAME:
                raise Unsupported(
                    f"{self.url} cannot hold {path!r}: the server has no objects at and below one name; publish to "
                    "another object store, or run lakelog serve"
                ) from error
            raise self._store.failure(verb, f"{self._prefix}{path}", error) from error
