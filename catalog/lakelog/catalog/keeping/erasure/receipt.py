"""The receipt of an erasure: a statement of what was done and checked, and its signature by the user's key.

The statement is JSON and stands in a commit, so that the chain of hashes covers it. It names objects and counts; it has
no value of a row, nor of the condition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lakelog.catalog.keeping.erasure.model import ErasedTable, Lost
from lakelog.log.errors import InvalidInput, Unsupported

FORMAT = 1
NAMED_MAX = 500
"""Objects that a receipt names one by one; of more, it has the number, and a hash of all their names."""


class Signer(msgspec.Struct, frozen=True):
    """Signs bytes; `key` is the public key in hexadecimal digits."""

    key: str
    sign: Callable[[bytes], str]


def signer_of(private_key: str | Path) -> Signer:
    """Return the signer of a file with an Ed25519 private key in PEM, without a password. InvalidInput for another
    file, Unsupported without the library `cryptography`."""
    ed25519, serialization = _library()
    try:
        data = Path(private_key).read_bytes()
        key = serialization.load_pem_private_key(data, password=None)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(
            f"{private_key} has no private key that can be read ({error}): make one by "
            "`openssl genpkey -algorithm ed25519 -out key.pem`"
        ) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InvalidInput(f"the key in {private_key} is no Ed25519 key: make one by openssl genpkey")
    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return Signer(public.hex(), lambda data: key.sign(data).hex())


def is_signed(statement: str, signature: str, signed_by: str) -> bool:
    """Return whether a statement was signed by that key. Unsupported without the library `cryptography`."""
    ed25519, _ = _library()
    from cryptography.exceptions import InvalidSignature

    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(signed_by))
        key.verify(bytes.fromhex(signature), statement.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise Unsupported(
            "signatures need the library cryptography: pip install 'lakelog[signing]'"
        ) from error
    return ed25519, serialization


def statement_of(
    erasure: str,
    filter: str,
    reference: str | None,
    tables: Sequence[ErasedTable],
    lost: Sequence[Lost],
    left: Sequence[str],
    out_of_reach: Sequence[str],
) -> str:
    """Return the text of a receipt."""
    said: dict[str, Any] = {
        "format": FORMAT,
        "erasure": erasure,
        "filter": filter,
        **({"reference": reference} if reference else {}),
        "logs": [_log(each) for each in tables],
        "lost": msgspec.to_builtins(lost),
        "left": list(left),
        "out_of_reach": list(out_of_reach),
    }
    return msgspec.json.encode(said).decode()


def _log(each: ErasedTable) -> dict[str, Any]:
    said = msgspec.to_builtins(each)
    for name in ("written", "deleted"):
        keys = sorted(said.pop(name))
        said[name] = {
            "objects": len(keys),
            "sha256": hashlib.sha256("\n".join(keys).encode()).hexdigest(),
            "names": keys[:NAMED_MAX],
        }
    return {name: value for name, value in said.items() if value is not None}
