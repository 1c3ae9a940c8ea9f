"""The receipt of an erasure: a statement of the work and the checks, and its signature by the user's key.

The statement is JSON in a commit, so the chain of hashes covers it. It names objects and counts, but has no
value of a row or of the condition. Other writers' folders, such as `email=ada@example.com`, lose their
values.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lakelog.catalog.keeping.erasure.model import ErasedTable, Lost
from lakelog.log.errors import InvalidInput, Unsupported, install_command

FORMAT = 1
NAMED_MAX = 500
"""A receipt names this many objects. For more objects it has their number, and a hash of all their names."""


class ReceiptSigner(msgspec.Struct, frozen=True):
    """Signs bytes. `key` is the public key in hexadecimal digits."""

    key: str
    sign: Callable[[bytes], str]


def signer_of(private_key: str | Path) -> ReceiptSigner:
    """Return the signer of a file with an Ed25519 private key in PEM, without a password.

    Raises InvalidInput for another file, and Unsupported without the library `cryptography`.
    """
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
    return ReceiptSigner(public.hex(), lambda data: key.sign(data).hex())


def is_signed(statement: str, signature: str, signed_by: str) -> bool:
    """Return whether a statement was signed by that key.

    Raises Unsupported without the library `cryptography`.
    """
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
            f"signatures need the library cryptography: {install_command('cryptography', 'signing')}"
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
    content: dict[str, Any] = {
        "format": FORMAT,
        "erasure": erasure,
        "filter": filter,
        **({"reference": reference} if reference else {}),
        "logs": [_log(item) for item in tables],
        "lost": [
            {name: _without_values(text) for name, text in msgspec.to_builtins(item).items()} for item in lost
        ],
        "left": list(map(_without_values, left)),
        "out_of_reach": list(map(_without_values, out_of_reach)),
    }
    return msgspec.json.encode(content).decode()


def _log(table: ErasedTable) -> dict[str, Any]:
    members = msgspec.to_builtins(table)
    if table.error is not None:
        members["error"] = _without_values(table.error)
    for name in ("written", "deleted"):
        keys = sorted(map(_without_values, members.pop(name)))
        members[name] = {
            "objects": len(keys),
            "sha256": hashlib.sha256("\n".join(keys).encode()).hexdigest(),
            "names": keys[:NAMED_MAX],
        }
    return {name: value for name, value in members.items() if value is not None}


def _without_values(text: str) -> str:
    """Return a text without the values of partition folders in other writers' paths."""
    return re.sub(r"(?<=/)([^/=]+)=[^/]+(?=/)", r"\1=…", text)
