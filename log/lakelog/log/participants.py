"""Who takes part in a transaction, and where its decision therefore lies.

The id of a transaction has a hash of the list of its logs, which are given by their places in the warehouse. An intent
has the place of its own log, and proves that it is in that list; the list itself, which would have to stand in every
one of its intents, is in the decision alone. So a client that may write one log can make no intent there that leads to
another transaction's decision: not under that id, and not at that place. The decision is in the deepest folder that
holds all the logs, so rights to the folder are rights to its transactions. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from lakelog.log.format import Intent
from lakelog.log.grammar import TXN_HASH_SIZE
from lakelog.log.merkle import root_by, tree_of


def is_url(place: str) -> bool:
    """Return whether a log's place is a URL or an absolute path, as it is for one outside of the warehouse."""
    return place.startswith("/") or "://" in place


def intents_of(id: str, folder: str, places: Sequence[str], warehouse: str) -> list[Intent]:
    """Return the intents of a new transaction of the logs at these places, in their order.

    `id` is new, and `folder` is that of the decision. An intent of a log outside of the warehouse has its URL.
    """
    listed = sorted(places)
    root, proofs = tree_of(listed)
    txn = _txn_of(id, folder, len(listed), root)
    at = {place: index for index, place in enumerate(listed)}
    return [
        Intent(
            txn=txn,
            log=place,
            index=at[place],
            count=len(listed),
            proof=proofs[at[place]],
            folder=folder,
            warehouse=warehouse if is_url(place) else "",
        )
        for place in places
    ]


def folder_of(homes: Sequence[str]) -> str:
    """Return the deepest folder that holds all of the folders; "" is the warehouse itself."""
    parts = [home.split("/") if home else [] for home in homes]
    held: list[str] = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        held.append(level[0])
    return "/".join(held)


def is_listed(intent: Intent) -> bool:
    """Return whether an intent is of a transaction that its log takes part in, as far as it shows by itself.

    Else it is void: no client makes such an intent, and its decision, wherever that were, is another transaction's.
    """
    own, folder = intent.log, intent.folder
    if not (is_url(own) or is_in(own, folder)):
        return False
    root = root_by(own, intent.index, intent.count, intent.proof)
    return root is not None and intent.txn == _txn_of(_id_in(intent.txn), folder, intent.count, root)


def is_of(txn: str, folder: str, places: Sequence[str]) -> bool:
    """Return whether these are all the logs of a transaction that is decided in `folder`."""
    if not places or not all(is_url(place) or is_in(place, folder) for place in places):
        return False
    root, _ = tree_of(sorted(places))
    return txn == _txn_of(_id_in(txn), folder, len(places), root)


def is_in(place: str, folder: str) -> bool:
    """Return whether a place in the warehouse is that folder of it, or in it."""
    return not folder or f"{place}/".startswith(f"{folder}/")


def _id_in(txn: str) -> str:
    return txn.rpartition("-")[0]


def _txn_of(id: str, folder: str, count: int, root: str) -> str:
    """Return the id of a transaction: `id`, and the hash of that, of the folder, and of the list by its root.

    `id` is hashed too: what fits into one transaction's list, were it ever found, would fit into no other's.
    """
    text = "\n".join((id, folder, str(count), root))
    return f"{id}-{hashlib.sha256(text.encode()).hexdigest()[:TXN_HASH_SIZE]}"
