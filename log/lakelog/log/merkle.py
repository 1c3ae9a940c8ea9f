"""Hash trees over lists of texts: one hash stands for a list, and few hashes prove that a text is at a place in it.

The tree is that of RFC 9162, section 2.1: a leaf is hashed behind a byte 0, a node behind a byte 1, so that no node
passes for a leaf; the left side of a node is a full tree, so that no leaf has to be doubled. A proof has the hashes
beside the way from the leaf up to the root. Which count and which place it is for is part of what is proven only where
the root is kept together with the count. Knows nothing of what the texts mean. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_LEAF, _NODE = b"\0", b"\1"

PROOF_MAX = 63
"""Hashes in a proof of the longest list that a stored count can stand for."""


def tree_of(texts: Sequence[str]) -> tuple[str, list[tuple[str, ...]]]:
    """Return the root of a list of at least one text, and for each text its proof. Hashes are in hexadecimal digits."""
    levels = [[_hash(_LEAF, text.encode()) for text in texts]]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = [below[at : at + 2] for at in range(0, len(below), 2)]
        levels.append([_hash(_NODE, *pair) if len(pair) == 2 else pair[0] for pair in pairs])
    proofs = [
        tuple(
            level[beside].hex()
            for height, level in enumerate(levels)
            if (beside := (index >> height) ^ 1) < len(level)
        )
        for index in range(len(texts))
    ]
    return levels[-1][0].hex(), proofs


def root_by(text: str, index: int, count: int, proof: Sequence[str]) -> str | None:
    """Return the root of the list of `count` texts that has this one at `index`, by its proof.

    None for a proof of another length, and for a place beyond the list: these prove nothing.
    """
    if not 0 <= index < count:
        return None
    found, beside = _hash(_LEAF, text.encode()), iter(proof)
    here, last = index, count - 1
    while last:
        if here % 2 or here < last:
            sibling = next(beside, None)
            if sibling is None:
                return None
            other = bytes.fromhex(sibling)
            found = _hash(_NODE, other, found) if here % 2 else _hash(_NODE, found, other)
        here, last = here >> 1, last >> 1
    return found.hex() if next(beside, None) is None else None


def _hash(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()
