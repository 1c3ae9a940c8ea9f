"""Who takes part in a transaction, and where its decision therefore lies.

An intent lists the logs of its transaction, by their places in the warehouse, and the transaction's id has a hash of
that list. So a client that may write one log can make no intent there that leads to another transaction's decision:
not under that id, and not at that place. The decision is in the deepest folder that holds all the logs, so rights
to the folder are rights to its transactions. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from lakelog.log.format import Intent
from lakelog.log.grammar import TXN_HASH_SIZE


def is_url(place: str) -> bool:
    """Return whether a log's place is a URL or an absolute path, as it is for one outside of the warehouse."""
    return place.startswith("/") or "://" in place


def new_txn(id: str, folder: str, participants: Sequence[str]) -> str:
    """Return the id of a transaction: `id`, which is new, and the hash of its list."""
    return f"{id}-{_hash_of(folder, participants)}"


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
    return intent.log in intent.participants and is_list_of(intent.txn, intent.folder, intent.participants)


def is_list_of(txn: str, folder: str, participants: Sequence[str]) -> bool:
    """Return whether a transaction has this list of logs, and may be decided in that folder of the warehouse."""
    return txn.endswith(f"-{_hash_of(folder, participants)}") and all(
        is_url(place) or is_in(place, folder) for place in participants
    )


def is_in(place: str, folder: str) -> bool:
    """Return whether a place in the warehouse is that folder of it, or in it."""
    return not folder or f"{place}/".startswith(f"{folder}/")


def _hash_of(folder: str, participants: Sequence[str]) -> str:
    text = "\n".join((folder, *participants))
    return hashlib.sha256(text.encode()).hexdigest()[:TXN_HASH_SIZE]
