"""The participants of a transaction, and the place of its decision.

The id of a transaction has a hash of the list of its logs, given by their places in the warehouse. An intent
has its own log's place and a proof that the list has it. The list itself would have to be in every intent, so
only the decision has it. So a client that may write only a single log cannot make an intent there that leads
to another transaction's decision. It can use neither that transaction's id nor the place of its decision. The
decision is in the deepest folder that holds all the logs, so rights to the folder are rights to its
transactions. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from lakelog.log.format import Intent
from lakelog.log.grammar import TXN_HASH_SIZE
from lakelog.log.merkle import root_by, tree_of


def is_url(place: str) -> bool:
    """Return whether a place is a URL or an absolute path, as for logs outside of the warehouse."""
    return place.startswith("/") or "://" in place


def intents_of(id: str, folder: str, places: Sequence[str], warehouse: str) -> list[Intent]:
    """Return the intents of a new transaction of the logs at these places, in the same order.

    `id` is new, and `folder` is the decision's. An intent of a log outside of the warehouse has its URL.
    """
    sorted_places = sorted(places)
    root, proofs = tree_of(sorted_places)
    txn = _txn_of(id, folder, len(sorted_places), root)
    indexes = {place: index for index, place in enumerate(sorted_places)}
    return [
        Intent(
            txn=txn,
            log=place,
            index=indexes[place],
            count=len(sorted_places),
            proof=proofs[indexes[place]],
            folder=folder,
            warehouse=warehouse if is_url(place) else "",
        )
        for place in places
    ]


def folder_of(homes: Sequence[str]) -> str:
    """Return the deepest folder that contains all of the folders; "" is the warehouse itself."""
    parts = [home.split("/") if home else [] for home in homes]
    common_parts: list[str] = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        common_parts.append(level[0])
    return "/".join(common_parts)


def is_listed(intent: Intent) -> bool:
    """Return whether an intent is of a transaction that lists its log, as far as the intent alone shows.

    If not, the intent is void. No client makes such an intent, and any decision for it is another
    transaction's.
    """
    place, folder = intent.log, intent.folder
    if not (is_url(place) or is_in(place, folder)):
        return False
    root = root_by(place, intent.index, intent.count, intent.proof)
    return root is not None and intent.txn == _txn_of(_id_in(intent.txn), folder, intent.count, root)


def is_of(txn: str, folder: str, places: Sequence[str]) -> bool:
    """Return whether these are all the logs of a transaction that is decided in `folder`."""
    if not places or not all(is_url(place) or is_in(place, folder) for place in places):
        return False
    root, _ = tree_of(sorted(places))
    return txn == _txn_of(_id_in(txn), folder, len(places), root)


def is_in(place: str, folder: str) -> bool:
    """Return whether a place in the warehouse is that folder, or below it."""
    return not folder or f"{place}/".startswith(f"{folder}/")


def _id_in(txn: str) -> str:
    return txn.rpartition("-")[0]


def _txn_of(id: str, folder: str, count: int, root: str) -> str:
    """Return a transaction id: `id`, and the hash of `id`, the folder, and the list's root.

    `id` is hashed too, so a hash collision with a transaction's list would fit no other transaction.
    """
    text = "\n".join((id, folder, str(count), root))
    return f"{id}-{hashlib.sha256(text.encode()).hexdigest()[:TXN_HASH_SIZE]}"
