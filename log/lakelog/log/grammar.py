"""The grammar of stored values: ids, numbers, times, and all names that become part of a key.

Any client that may write a log's folder can write its objects, and a hash proves only that an object is
whole. So decoded values are believed only in these forms. No form contains a slash or equals `.` or `..`,
except places, whose parts do neither. So no stored value leads out of the folder that it may name. These
types are checked when msgspec decodes an object; other checks happen when a key is made. Pure.
"""

import re
from typing import Annotated, TypeAlias

from msgspec import Meta

from lakelog.log.errors import InvalidInput
from lakelog.log.merkle import PROOF_MAX

KEY_SIZE_MAX = 1024
NUMBER_MAX = 2**63 - 1
TIME_MAX_US = 253_402_300_799_000_000
"""The last second of the year 9999: later times cannot be shown."""
FEATURE_SIZE_MAX = 64

RIGHTS_KEY = "_rights"
"""An object of each `_txn/` that is not a decision. Clients that may write decisions may write it."""

ROOT_RIGHTS_KEY = f"_txn/{RIGHTS_KEY}"
"""The first object of a new root on a server that may ignore conditions. Alone, it makes no warehouse."""

DOCTOR_FOLDER = "_doctor"
"""A folder of a warehouse in which examinations of its store write. Readers and writers ignore it."""

PUBLISHED_FOLDER = "_rest"
"""A folder of a warehouse with derived metadata for readers of other formats. lakelog never reads it."""

TXN_HASH_SIZE = 32
"""Digits of the hash in a transaction id: 128 bits."""

# Without the last part, Python's `$` would accept a final line feed. JSON Schema does not know `\\Z`.
_END = r"$(?!\n)"
_ID = r"[A-Za-z0-9_-]{1,64}"
_NUMBER = r"[0-9]{20}"
# A part of a place, which is a key, a path or a URL.
_SAFE = r"[^/\\\u0000-\u001f\u007f]"
_PART = rf"(?!\.\.?(?:/|$)){_SAFE}+"
_PLACE = rf"{_PART}(?:/{_PART})*"
_SIDECAR = rf"(?:{_NUMBER}-)?{_ID}-[0-9a-f]{{16}}\.bin"
_BLOB = rf"{_NUMBER}-[A-Za-z0-9_.-]{{1,128}}"
_TXN = rf"[A-Za-z0-9_-]{{1,31}}-[0-9a-f]{{{TXN_HASH_SIZE}}}"
_LOCATION = rf"(?:|{_PLACE}|/{_PLACE}|[a-z][a-z0-9]*://{_PLACE})"

Id: TypeAlias = Annotated[str, Meta(pattern=f"^{_ID}{_END}")]
"""Clients make 26 characters of lowercase base32. Readers accept 1 to 64 characters of `A-Za-z0-9_-`."""

IdDigest: TypeAlias = Annotated[str, Meta(pattern=f"^[0-9a-f]{{16}}{_END}")]
"""The first 8 bytes of the SHA-256 of an id."""

Number: TypeAlias = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
"""A version, a count or a size."""

TimeUs: TypeAlias = Annotated[int, Meta(ge=0, le=TIME_MAX_US)]
"""Microseconds since 1970 UTC."""

Hash: TypeAlias = Annotated[str, Meta(pattern=f"^[0-9a-f]{{64}}{_END}")]
HashOrNone: TypeAlias = Annotated[str, Meta(pattern=f"^(?:[0-9a-f]{{64}})?{_END}")]
"""The SHA-256 of an object; "" if there is none."""

Proof: TypeAlias = Annotated[tuple[Hash, ...], Meta(max_length=PROOF_MAX)]
"""The sibling hashes on the way from a leaf of a hash tree up to its root."""

SidecarName: TypeAlias = Annotated[str, Meta(pattern=f"^{_SIDECAR}{_END}")]
BlobName: TypeAlias = Annotated[str, Meta(pattern=f"^{_BLOB}{_END}")]
"""The name of a manifest: the version that wrote it, a dash, and plain characters."""

TxnId: TypeAlias = Annotated[str, Meta(pattern=f"^{_TXN}{_END}")]
"""A transaction id: an id, and the hash of the list of its logs."""

Folder: TypeAlias = Annotated[str, Meta(pattern=f"^(?:|{_PLACE}){_END}", max_length=KEY_SIZE_MAX)]
"""A folder of the warehouse; "" is the warehouse itself."""

Location: TypeAlias = Annotated[str, Meta(pattern=f"^{_LOCATION}{_END}", max_length=KEY_SIZE_MAX)]
"""The folder of a log: below the warehouse ("" is the warehouse itself), or a URL or an absolute path."""

FilePath: TypeAlias = Annotated[
    str,
    Meta(pattern=rf"^(?:{_PLACE}|/{_PLACE}|[a-z][a-z0-9]*://{_PLACE}){_END}", max_length=2 * KEY_SIZE_MAX),
]
"""The place of a data file: below its table's folder, or a URL or an absolute path."""

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
Word: TypeAlias = Annotated[str, Meta(pattern=f"^[a-z][a-z -]{{0,63}}{_END}")]
"""A word for people, such as the name of an operation. Newer clients may know more words."""

Reason: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2000)]
"""A message for people."""

CutObject: TypeAlias = Annotated[str, Meta(pattern=rf"^{_ID}\.json{_END}")]
"""The name of a saved cut's object, in the warehouse's `_cut/`."""

Int64: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=NUMBER_MAX)]
Int32: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""The id of a column, a partition field or a spec."""

Feature: TypeAlias = Annotated[str, Meta(max_length=FEATURE_SIZE_MAX)]

_KEY, _ID_FORM, _BLOB_FORM, _SIDECAR_FORM, _TXN_FORM, _LOCATION_FORM = map(
    re.compile, (_PLACE, _ID, _BLOB, _SIDECAR, _TXN, _LOCATION)
)
_PREFIX_OUT = re.compile(r"/|(?:.*/)?\.\.?(?:/|\Z)|.*[\u0000\\]|.*//", re.DOTALL)


def check_key(key: str) -> None:
    """Raise InvalidInput unless `key` names an object below the root of a store.

    A key consists of parts with slashes between them. No part is empty, `.` or `..`, or has a backslash or a
    control character. So a key is neither an absolute path nor a URL.
    """
    if not is_key(key):
        raise InvalidInput(
            f"{shortened(repr(key))} is not a key of an object: it needs 1 to {KEY_SIZE_MAX} characters, and parts "
            "between slashes that are not empty, . or .., without backslashes and control characters"
        )


def is_key(key: str) -> bool:
    """Return whether a store takes this key, which may be listed and another program's."""
    if len(key) > KEY_SIZE_MAX or _KEY.fullmatch(key) is None:
        return False
    try:
        key.encode()
    except UnicodeEncodeError:
        return False  # the name of a file has a byte that is not UTF-8
    return True


def check_prefix(prefix: str) -> None:
    """Raise InvalidInput if a prefix of keys leads out of the root."""
    if _PREFIX_OUT.match(prefix) is not None:
        raise InvalidInput(f"{shortened(repr(prefix))} is not a prefix of keys: it leads out of the store")


def is_location(text: str) -> bool:
    """Return whether a place can be stored as a log's place."""
    return len(text) <= KEY_SIZE_MAX and _LOCATION_FORM.fullmatch(text) is not None


def check_id(id: str, what: str) -> None:
    """Raise InvalidInput unless a caller's `id` may be stored."""
    if _ID_FORM.fullmatch(id) is None:
        raise InvalidInput(
            f"{shortened(repr(id))} is not {what}: use 1 to 64 letters, digits, dashes and underscores, as "
            "new_id() does"
        )


def is_blob(name: str) -> bool:
    """Return whether a listed name is a manifest's. False for foreign objects."""
    return _BLOB_FORM.fullmatch(name) is not None


def is_txn(name: str) -> bool:
    """Return whether a listed object's name, without `.json`, is a decision's."""
    return _TXN_FORM.fullmatch(name) is not None


def is_id(name: str) -> bool:
    """Return whether part of a listed name is an id."""
    return _ID_FORM.fullmatch(name) is not None


def is_sidecar(name: str) -> bool:
    """Return whether a listed name is a sidecar's. False for foreign objects."""
    return _SIDECAR_FORM.fullmatch(name) is not None


def shortened(text: str, size: int = 300) -> str:
    """Return a text of unknown length and content in a form that fits on a line of a message."""
    excerpt = text if len(text) <= size else f"{text[:size]}… ({len(text):,} characters)"
    return excerpt if excerpt.isprintable() else repr(excerpt)[1:-1]
