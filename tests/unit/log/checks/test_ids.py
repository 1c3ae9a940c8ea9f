"""That a check of a log sees what happened twice."""

from __future__ import annotations

from unittest.mock import patch

import msgspec
from tests.unit.log.test_proposals import begin_commit

from lakelog.log import Commit
from lakelog.log.checks import verify_ids
from lakelog.log.checks.verify_ids import RecentIds
from lakelog.log.format import ChangeRefusal, SharedChange

NO = ChangeRefusal(kind="conflict", message="no")


def version(number: int, *ids: str, refused: str = "") -> Commit:
    changes = tuple(SharedChange(commit_id=id, base=1, refused=NO if id == refused else None) for id in ids)
    return msgspec.structs.replace(
        begin_commit(), version=number, commit_id=f"v{number}", changes=changes if len(ids) > 1 else ()
    )


def test_a_change_that_two_versions_decide_is_found() -> None:
    ids = RecentIds()
    for commit in (version(2, "a", "b", refused="b"), version(3, "c"), version(4, "d", "e")):
        assert list(ids.passed(commit)) == []
    [applied_text] = ids.passed(version(5, "a", "f"))
    assert applied_text == "applies change a, which version 2 applies already"
    texts = list(ids.passed(version(6, "b", "v3", refused="v3")))
    assert texts == [
        "applies change b, which version 2 refuses already",
        "refuses change v3, which version 3 applies already",
    ]


def test_only_the_last_versions_are_remembered() -> None:
    with patch.object(verify_ids, "REMEMBERED", 3):
        ids = RecentIds()
        for number in range(2, 9):
            assert (
                list(ids.passed(version(number, "same", "other") if number in (2, 5) else version(number)))
                == []
            )
