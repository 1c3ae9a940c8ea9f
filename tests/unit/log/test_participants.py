"""An intent shows that its log takes part, and the place of the decision. Other intents are void."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lakelog.log.ids import new_id
from lakelog.log.participants import folder_of, intents_of, is_listed, is_of

PLACES = ["n-1/t-1", "n-1/t-2", "n-1", "s3://b/t", "n-1/n-2/t-3"]


def test_each_intent_of_a_transaction_is_listed_and_the_whole_list_is_that_of_its_id() -> None:
    intents = intents_of("x", "n-1", PLACES, "s3://w")
    assert [intent.log for intent in intents] == PLACES and all(map(is_listed, intents))
    assert [intent.warehouse for intent in intents] == ["", "", "", "s3://w", ""]
    [txn] = {intent.txn for intent in intents}
    assert is_of(txn, "n-1", PLACES[::-1])
    for folder, places in (("", PLACES), ("n-1", PLACES[1:]), ("n-1", [*PLACES, "n-1/t-9"]), ("n-1", [])):
        assert not is_of(txn, folder, places)
    assert txn != intents_of("y", "n-1", PLACES, "s3://w")[0].txn.replace("y-", "x-", 1), (
        "ids are hashed, too"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"log": "n-1/t-9"}, {"log": ""}, {"folder": ""}, {"folder": "n-1/t"}, {"folder": "n-2"}, {"index": 0},
        {"count": 4}, {"count": 6}, {"count": 0}, {"count": 2**63 - 1}, {"index": 2**63 - 1}, {"proof": ()},
    ],
    ids=str,
)  # fmt: skip
def test_an_intent_with_anything_else_in_it_is_void(changed: dict[str, Any]) -> None:
    intent = intents_of("x", "n-1", PLACES, "s3://w")[0]
    assert is_listed(intent) and not is_listed(msgspec.structs.replace(intent, **changed))


def test_proofs_and_ids_are_of_one_place_and_one_transaction() -> None:
    first, second, *_ = intents_of("x", "n-1", PLACES, "")
    for other_intent in (
        second,
        intents_of("x", "n-1", PLACES[:3], "")[0],
        intents_of("y", "n-1", PLACES, "")[0],
    ):
        assert not is_listed(msgspec.structs.replace(first, txn=other_intent.txn, log=second.log))
        assert other_intent.proof == first.proof or not is_listed(
            msgspec.structs.replace(first, proof=other_intent.proof)
        )
    assert not is_listed(msgspec.structs.replace(first, proof=first.proof[::-1]))
    assert not is_listed(msgspec.structs.replace(first, proof=(*first.proof, first.proof[0])))


def test_a_folder_holds_its_logs_by_whole_names() -> None:
    assert folder_of(["n-1/t-1", "n-1/t-11"]) == "n-1" and folder_of(["n-1", "n-11"]) == ""
    [alone] = intents_of("x", "n-1", ["n-11/t"], "")
    assert not is_listed(alone), "n-11 is beside n-1"


def test_intents_grow_with_the_logarithm_of_their_logs() -> None:
    sizes = {}
    for count in (2, 10, 100, 1000):
        intents = intents_of(new_id(), "", [f"n-{new_id()}/t-{new_id()}" for _ in range(count)], "")
        sizes[count] = max(len(msgspec.json.encode(intent)) for intent in intents)
    assert sizes[1000] < 950 and sizes[1000] < 4 * sizes[2], sizes
