"""What the logs of the second world are about: a balance each, between which transactions move amounts.

One of the logs also notes which lives of another log it takes for alive: a transaction that drops or
restores that one also says so here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakelog.log import Commit, Json, NoFeatures, StateDump

OPENING = 100


@dataclass(frozen=True)
class Ledger:
    balance: int = OPENING
    count: int = 0
    digest: str = ""
    alive: tuple[tuple[str, bool], ...] = ()


def fold(state: Ledger, commit: Commit, blobs: Sequence[bytes]) -> Ledger:
    for event in commit.events:
        operation = blobs[event["blob"]].decode() if "blob" in event else event["op"]
        delta = event.get("delta", 0)
        # The time is part of it: a state folded with another time than that of all others is wrong.
        line = f"{state.digest} {operation} {delta} {commit.time_us}"
        alive = dict(state.alive) | ({event["life"]: event["alive"]} if "life" in event else {})
        state = replace(
            state,
            balance=state.balance + delta,
            count=state.count + 1,
            digest=hashlib.sha256(line.encode()).hexdigest()[:16],
            alive=tuple(sorted(alive.items())),
        )
    return state


class LedgerProjection(NoFeatures):
    def initial(self) -> Ledger:
        return Ledger()

    def apply(self, state: Ledger, commit: Commit, blobs: Sequence[bytes]) -> Ledger:
        return fold(state, commit, blobs)

    def dump(self, state: Ledger, version: int, for_base: bool = False) -> StateDump:
        root: dict[str, Json] = {
            "balance": state.balance,
            "count": state.count,
            "digest": state.digest,
            "alive": dict(state.alive),
        }
        return StateDump(root, {}, ())

    def stored(self, dump: StateDump) -> None:
        return

    def load(self, root: Json) -> Ledger:
        return Ledger(root["balance"], root["count"], root["digest"], tuple(sorted(root["alive"].items())))
