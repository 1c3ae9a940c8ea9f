"""The store of a URL: the spelling of a root, and which store serves it with which options.

Rule: only its entry in SCHEMES makes a URL scheme known, and no other module compares schemes. So a new store
is its module, with an entry here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from lakelog.log.errors import InvalidInput
from lakelog.log.stores.store import ObjectStore


def canonical_url(url: str) -> str:
    """Return the canonical spelling of a root: an absolute path, s3://bucket/prefix or memory://name; no last slash.

    `file:/x`, `file:///x` and `/x/` are "/x"; `s3a://b/p/` is "s3://b/p"; relative paths become absolute. A
    container of Azure is always named with its account: `abfss://container@account.dfs.core.windows.net/p`.
    Raises InvalidInput for anything else.
    """
    if not url or "\0" in url:
        raise InvalidInput(f"{url!r} is not a location: give a folder, s3://bucket/prefix or memory://name")
    word, colon, after_scheme = url.partition(":")
    scheme = next(
        (name for name, store_scheme in SCHEMES.items() if word in (name, *store_scheme.aliases)), word
    )
    is_known = scheme == "file" or scheme in SCHEMES
    if not colon or "/" in word or (not is_known and not after_scheme.startswith("//")):
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
    if not is_known:
        examples = [
            f"{name}://"
            for scheme_name, store_scheme in SCHEMES.items()
            for name in (scheme_name, *store_scheme.aliases)
        ]
        raise InvalidInput(
            f"{url!r} has an unknown scheme {word!r}: use a folder, file:, {', '.join(examples[:-1])} or {examples[-1]}"
        )
    bucket, _, prefix = after_scheme.removeprefix("//").partition("/")
    if not after_scheme.startswith("//") or not bucket:
        raise InvalidInput(f"{url!r} names no bucket: write {word}://bucket/prefix")
    bucket_of = SCHEMES[scheme].bucket_of
    if bucket_of is not None:
        bucket = bucket_of(url, bucket)
    elif "@" in bucket or ":" in bucket:
        raise InvalidInput(
            f"{url!r} has keys before its bucket, which would be kept with the place: leave them out, and give "
            "credentials by the environment or a profile"
        )
    segments = [segment for segment in prefix.split("/") if segment]
    return "/".join([f"{scheme}://{bucket}", *segments])


def open_store(url: str, options: Mapping[str, str] | None = None) -> ObjectStore:
    """Return the store of a URL. Makes no request.

    Options of a folder: fsync = on (default) | off. Options of S3: endpoint, region, path_style = true |
    false. Google Cloud Storage has gcs_endpoint, Azure has azure_endpoint. Credentials come only from the
    usual chain of the platform. Options of other kinds of store are ignored, so that a set of options serves
    a whole configuration. Raises InvalidInput for unknown options.
    """
    options = dict(options or {})
    for name in options:
        if name not in known_options():
            raise InvalidInput(f"unknown option {name!r} for {url!r}: {option_hint(name)}")
    root = canonical_url(url)
    return _scheme_of(root).open(root, options)


def known_options() -> list[str]:
    """Return the names of all options, of each kind of store."""
    names = [*_FOLDER.options, *(name for each in SCHEMES.values() for name in each.options)]
    return list(dict.fromkeys(names))


def option_hint(name: str) -> str:
    """Return what helps who gave an unknown option. Never says its value, which may be a secret."""
    from difflib import get_close_matches  # for this message alone

    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word not in _PREFIXES]
    if _SECRET_WORDS.intersection(words):
        return (
            "credentials are no options, so that no log or pickle has them: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), or AWS_PROFILE, GOOGLE_APPLICATION_CREDENTIALS, or "
            "AZURE_STORAGE_ACCOUNT_KEY, in the environment"
        )
    names = known_options()
    similar_names = get_close_matches("_".join(words), names, n=1, cutoff=0.6) or [
        part for part in words if part in names
    ]
    return f"did you mean {similar_names[0]}?" if similar_names else f"known are {', '.join(names)}"


ENDPOINT_OPTIONS = frozenset({"endpoint", "gcs_endpoint", "azure_endpoint"})
"""The options that name a server. Their values may contain a user and a password."""


def endpoint_option(url: str) -> str:
    """Return the name of the option for the server of a location: `endpoint` if it has none of its own."""
    return _scheme_of(canonical_url(url)).endpoint_option or "endpoint"


def shared_root(url: str) -> tuple[str, str]:
    """Return the root whose store serves a canonical URL's place, and the place's prefix there.

    The root is the bucket if a single client serves all its places, else the place itself.
    """
    if not _scheme_of(url).is_shared:
        return url, ""
    scheme, _, place = url.partition("://")
    bucket, _, prefix = place.partition("/")
    return f"{scheme}://{bucket}", prefix


def is_of_one_process(url: str) -> bool:
    """Return whether the objects at a canonical URL are in the memory of a single process."""
    return _scheme_of(url).is_of_one_process


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreScheme:
    """How URLs of a scheme are opened, with the options for it.

    `aliases` are other spellings of the scheme. If `is_shared`, a single store of a bucket serves all its
    places. `bucket_of` returns the canonical bucket of a URL, given the URL and its bucket, or raises InvalidInput.
    """

    open: Callable[[str, Mapping[str, str]], ObjectStore]
    options: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    is_shared: bool = False
    is_of_one_process: bool = False
    bucket_of: Callable[[str, str], str] | None = None
    endpoint_option: str = ""


def _folder(root: str, options: Mapping[str, str]) -> ObjectStore:
    from lakelog.log.stores.local_store import LocalStore

    return LocalStore(root, fsync=_switch(options, "fsync", default="on"))


def _s3(root: str, options: Mapping[str, str]) -> ObjectStore:
    from lakelog.log.stores.s3_store import S3Store

    return S3Store(
        root,
        endpoint=_endpoint(options, "endpoint"),
        region=options.get("region"),
        path_style=_switch(options, "path_style", default="false"),
    )


def _memory(root: str, _options: Mapping[str, str]) -> ObjectStore:
    from lakelog.log.stores.memory_store import MemoryStore

    return MemoryStore.named(root)


def _google(root: str, options: Mapping[str, str]) -> ObjectStore:
    from lakelog.log.stores.cloud_store import GoogleStore

    return GoogleStore(root, endpoint=_endpoint(options, "gcs_endpoint"))


def _azure(root: str, options: Mapping[str, str]) -> ObjectStore:
    from lakelog.log.stores.cloud_store import AzureStore

    return AzureStore(root, endpoint=_endpoint(options, "azure_endpoint"))


def _container_of(url: str, bucket: str) -> str:
    """Return a container with its account's host. Only the environment names an account that the URL leaves out."""
    container, _, host = bucket.partition("@")
    host = host or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
    if not host:
        raise InvalidInput(
            f"{url!r} names no account: write abfss://container@account.dfs.core.windows.net/prefix, or set "
            "AZURE_STORAGE_ACCOUNT_NAME"
        )
    if not _CONTAINER.fullmatch(container) or not _HOST.fullmatch(host):
        raise InvalidInput(
            f"{url!r} is not of a container of Azure: write abfss://container@account.dfs.core.windows.net/prefix"
        )
    account, _, rest = host.partition(".")
    domain = rest.removeprefix("dfs.").removeprefix("blob.") or "core.windows.net"
    return f"{container}@{account}.dfs.{domain}"


_FOLDER = StoreScheme(open=_folder, options=("fsync",))
SCHEMES = {
    "s3": StoreScheme(
        open=_s3, options=("endpoint", "region", "path_style"), aliases=("s3a", "s3n"), is_shared=True
    ),
    "gs": StoreScheme(
        open=_google,
        options=("gcs_endpoint",),
        endpoint_option="gcs_endpoint",
        aliases=("gcs",),
        is_shared=True,
    ),
    "abfss": StoreScheme(
        open=_azure,
        options=("azure_endpoint",),
        endpoint_option="azure_endpoint",
        aliases=("abfs", "az", "azure"),
        is_shared=True,
        bucket_of=_container_of,
    ),
    "memory": StoreScheme(open=_memory, is_of_one_process=True),
}
_PREFIXES = frozenset({"aws", "s3", "fs", "s3a", "client", "config"})
"""Words before the names of options in other libraries: `s3.endpoint`, `aws_region`."""
_SECRET_WORDS = frozenset({"key", "secret", "token", "password", "credential", "credentials", "profile"})
_CONTAINER = re.compile(r"[a-z0-9$](?:-?[a-z0-9])*")
_HOST = re.compile(r"[a-z0-9]{3,24}(?:\.(?:dfs|blob)(?:\.[a-z0-9-]+)+)?")
_SWITCH = {"on": True, "true": True, "off": False, "false": False}


def _scheme_of(canonical: str) -> StoreScheme:
    return SCHEMES.get(canonical.partition("://")[0], _FOLDER)


def _endpoint(options: Mapping[str, str], name: str) -> str | None:
    endpoint = options.get(name)
    if endpoint is not None and not endpoint.lower().startswith(("http://", "https://")):
        raise InvalidInput(
            f"option {name} = {endpoint!r} has no scheme: write http://… or https://…, as the server has it"
        )
    return endpoint


def _switch(options: Mapping[str, str], name: str, *, default: str) -> bool:
    value = str(options.get(name, default)).lower()  # Python's own True and False, too
    if value not in _SWITCH:
        raise InvalidInput(f"option {name} = {value!r}: use on or off")
    return _SWITCH[value]
