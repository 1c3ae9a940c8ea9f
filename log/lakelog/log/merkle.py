"""Hash trees over lists of texts: a hash stands for a list, and a few hashes prove a text's place in it.

The tree is that of RFC 9162, section 2.1. A leaf is hashed after a byte 0 and a node after a byte 1, so no
node passes for a leaf. The left side of a node is a full tree, so no leaf has to be doubled. A proof has the
sibling hashes on the way from the leaf to the root. It proves the count and the place only if the root is
kept together with the count. This module does not know what the texts mean. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_LEAF, _NODE = b"\0", b"\1"

PROOF_MAX = 63
"""Hashes in a proof, for the longest list that a stored count allows."""


def tree_of(texts: Sequence[str]) -> tuple[str, list[tuple[str, ...]]]:
    """Return the root of a non-empty list of texts, and a proof for each text. Hashes are hexadecimal."""
    levels = [[_hash(_LEAF, text.encode()) for text in texts]]
    while len(levels[-1]) > 1:
        children = levels[-1]
        pairs = [children[start : start + 2] for start in range(0, len(children), 2)]
        levels.append([_hash(_NODE, *pair) if len(pair) == 2 else pair[0] for pair in pairs])
    proofs = [
        tuple(
            level[sibling].hex()
            for height, level in enumerate(levels)
            if (sibling := (index >> height) ^ 1) < len(level)
        )
        for index in range(len(texts))
    ]
    return levels[-1][0].hex(), proofs


def root_by(text: str, index: int, count: int, proof: Sequence[str]) -> str | None:
    """Return the root of the list of `count` texts that has this text at `index`, by its proof.

    Returns None if the proof has a wrong length or the index is beyond the list, since these prove nothing.
    """
    if not 0 <= index < count:
        return None
    node, siblings = _hash(_LEAF, text.encode()), iter(proof)
    position, last = index, count - 1
    while last:
        if position % 2 or position < last:
            sibling = next(siblings, None)
            if sibling is None:
                return None
            sibling_hash = bytes.fromhex(sibling)
            node = _hash(_NODE, sibling_hash, node) if position % 2 else _hash(_NODE, node, sibling_hash)
        position, last = position >> 1, last >> 1
    return node.hex() if next(siblings, None) is None else None


def _hash(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()
