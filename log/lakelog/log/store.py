"""The store port: the few operations that lakelog asks of object storage, and what each must guarantee.

Everything rests on one of them: of all callers that ever put_if_absent one key, exactly one creates it.
Keys are '/'-separated and relative to the store's root url. All methods may be called from several threads.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from lakelog.log.errors import InvalidInput

KEY_SIZE_MAX = 1024


class ObjectStore(Protocol):
    """Shared objects below one root.

    Every method raises StorageError when the store fails, PermissionDenied when it refuses. Reads see all
    that was acknowledged before they began. Nobody ever sees half an object.
    """

    url: str  # the root, without a trailing slash

    def get(self, key: str) -> bytes | None:
        """Return the object's bytes, or None where there is none."""
        ...

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return each key's bytes or None, in the order of `keys`; one parallel round, not one snapshot."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Create the object entirely or not at all, durably, unless the key is taken.

        True: this call created it. False: the key is taken, maybe by an echo of this very call, because
        clients resend. StorageError: it may have been created, or may still be, unless `without_effect`.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Create or replace the object entirely, durably."""
        ...

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        """Yield the keys that start with `prefix` and are greater than `after`, sorted by their UTF-8 bytes."""
        ...

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        """Yield what `list_after` does, each key with its object's size in bytes. For maintenance only."""
        ...

    def list_folders(self, prefix: str) -> list[str]:
        """Return, sorted, what stands between `prefix` (which ends with a slash, or is empty) and the next slash of the
        keys below it. Costs a page for every 1000 of them, however many keys there are. For maintenance only."""
        ...

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield keys, with sizes, of what dead processes left half-made; no other listing shows them, `delete` removes
        them. Nothing that a living process still needs, as far as the store can know that, is among them."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove the objects; those that are absent are fine."""
        ...

    def open_input(self, key: str) -> BinaryIO:
        """Return a seekable reader. Raises NotFound."""
        ...

    def now_us(self) -> int | None:
        """Return the store's own time as far as it is known without a request, else None.

        It decides nothing but the times that commits show. A writer's clock may be wrong on its own; the
        store's is the same for everybody.
        """
        ...


def canonical_url(url: str) -> str:
    """Return the one spelling of a root: an absolute path, s3://bucket/prefix or memory://name; no last slash.

    `file:/x`, `file:///x` and `/x/` are "/x"; `s3a://b/p/` is "s3://b/p"; relative paths become absolute.
    Raises InvalidInput for anything else.
    """
    if not url or "\0" in url:
        raise InvalidInput(f"{url!r} is not a location: give a folder, s3://bucket/prefix or memory://name")
    scheme, colon, rest = url.partition(":")
    if not colon or "/" in scheme or (scheme not in _SCHEMES and not rest.startswith("//")):
        return os.path.abspath(os.path.expanduser(url))
    if scheme == "file":
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise InvalidInput(
                f"{url!r} names a host: write file:///{parts.netloc}{parts.path} for a local folder"
            )
        path = unquote(parts.path)
        if not path.startswith("/"):
            raise InvalidInput(f"{url!r} is not absolute: write file:///path")
        return os.path.abspath(path).replace("//", "/")
    if scheme in ("s3", "s3a", "s3n", "memory"):
        bucket, _, prefix = rest.removeprefix("//").partition("/")
        if not rest.startswith("//") or not bucket:
            raise InvalidInput(f"{url!r} names no bucket: write {scheme}://bucket/prefix")
        segments = [segment for segment in prefix.split("/") if segment]
        scheme = "memory" if scheme == "memory" else "s3"
        return "/".join([f"{scheme}://{bucket}", *segments])
    raise InvalidInput(
        f"{url!r} has an unknown scheme {scheme!r}: use a folder, file:, s3://, s3a:// or memory://"
    )


def open_store(url: str, options: Mapping[str, str] | None = None) -> ObjectStore:
    """Return the store of a url; makes no request.

    Options of a folder: fsync = on (default) | off. Of S3: endpoint, region, path_style = true | false;
    credentials come from the usual AWS chain only. Options of the other kinds of store are ignored, so that one
    set serves a whole configuration; unknown ones raise InvalidInput.
    """
    options = dict(options or {})
    for name in options:
        if name not in _OPTIONS:
            raise InvalidInput(f"unknown option {name!r} for {url!r}: known are {', '.join(_OPTIONS)}")
    root = canonical_url(url)
    if root.startswith("memory://"):
        from lakelog.log.memory_store import MemoryStore

        return MemoryStore.named(root)
    if root.startswith("s3://"):
        from lakelog.log.s3_store import S3Store

        return S3Store(
            root,
            endpoint=options.get("endpoint"),
            region=options.get("region"),
            path_style=_switch(options, "path_style", default="false"),
        )
    from lakelog.log.local_store import LocalStore

    return LocalStore(root, fsync=_switch(options, "fsync", default="on"))


_SCHEMES = ("file", "s3", "s3a", "s3n", "memory")
_OPTIONS = ("fsync", "endpoint", "region", "path_style")
_SWITCH = {"on": True, "true": True, "off": False, "false": False}


def _switch(options: Mapping[str, str], name: str, *, default: str) -> bool:
    value = options.get(name, default).lower()
    if value not in _SWITCH:
        raise InvalidInput(f"option {name} = {value!r}: use on or off")
    return _SWITCH[value]


def check_key(key: str) -> None:
    """Assert that `key` stays below the root: a bug of the caller, never bad input."""
    assert key and len(key) <= KEY_SIZE_MAX, f"bad key {key[:80]!r}"
    assert key[0] != "/" and ".." not in key.split("/") and "\0" not in key, f"bad key {key!r}"
