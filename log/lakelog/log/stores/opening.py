"""The store of a url: how a root is spelled, and which store serves it with which options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from lakelog.log.errors import InvalidInput
from lakelog.log.stores.store import ObjectStore


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
        if "@" in bucket or ":" in bucket:
            raise InvalidInput(
                f"{url!r} has keys before its bucket, which would be kept with the place: leave them out, and give "
                "credentials by the environment or a profile"
            )
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
        from lakelog.log.stores.memory_store import MemoryStore

        return MemoryStore.named(root)
    if root.startswith("s3://"):
        from lakelog.log.stores.s3_store import S3Store

        return S3Store(
            root,
            endpoint=_endpoint(options),
            region=options.get("region"),
            path_style=_switch(options, "path_style", default="false"),
        )
    from lakelog.log.stores.local_store import LocalStore

    return LocalStore(root, fsync=_switch(options, "fsync", default="on"))


_SCHEMES = ("file", "s3", "s3a", "s3n", "memory")
_OPTIONS = ("fsync", "endpoint", "region", "path_style")
_SWITCH = {"on": True, "true": True, "off": False, "false": False}


def _endpoint(options: Mapping[str, str]) -> str | None:
    endpoint = options.get("endpoint")
    if endpoint is not None and not endpoint.lower().startswith(("http://", "https://")):
        raise InvalidInput(
            f"option endpoint = {endpoint!r} has no scheme: write http://… or https://…, as the server has it"
        )
    return endpoint


def _switch(options: Mapping[str, str], name: str, *, default: str) -> bool:
    value = options.get(name, default).lower()
    if value not in _SWITCH:
        raise InvalidInput(f"option {name} = {value!r}: use on or off")
    return _SWITCH[value]
