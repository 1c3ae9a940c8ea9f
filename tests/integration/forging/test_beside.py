"""What a client that may write one namespace forges there: nothing beside it is changed, locked or reported for it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.integration.forging.forge import SCHEMA, Place, build

ROW = pa.table({"id": [9]}, schema=SCHEMA)


class Died(BaseException):
    """The coordinator of a transaction dies."""


@pytest.fixture
def place() -> Place:
    return build()


def die_before_the_decision(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    """Leave a transaction of the forger's table and the victim's undecided."""

    def die(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patched, pytest.raises(Died):
        patched.setattr("lakelog.log.together._Transaction._decide", die)
        with place.catalog().transaction() as transaction:
            for name in ("forger.t", "victim.t"):
                transaction.load_table(name).append(ROW)


def test_an_abort_on_behalf_of_another_commit_is_an_abort(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer that meets the forged intent decides the transaction by what stands there."""
    die_before_the_decision(monkeypatch, place)
    place.alter(place.commit_key(place.own, place.head), lambda intent: intent.update(commit_id="e" * 26))
    place.catalog().load_table("forger.t").append(ROW)
    assert place.catalog().load_table("victim.t").append(ROW).row_count == 4
    assert place.catalog().load_table("victim.t").scan().to_arrow().num_rows == 4
    assert not [each for each in place.catalog().fsck().found if "decision" in each.kind]
