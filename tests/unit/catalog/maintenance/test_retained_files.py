"""The memory of a check for the files of all versions suffices to check each file once, in parts."""

from __future__ import annotations

import pytest

from lakelog.catalog.core.files import are_among, hashes_of
from lakelog.catalog.core.files.deletion_vectors import DeletionVector, deletes_to_json
from lakelog.catalog.keeping.maintenance.fsck import retained
from lakelog.catalog.keeping.maintenance.fsck.retained import DataFileFacts, RetainedFiles


def object_of(number: int) -> str:
    return f"data/{number:020d}-{'a' * 26}-de8694f89e3708d1.puffin"


def vector(number: int) -> str:
    return deletes_to_json(
        DeletionVector(rows=1, crc=0, size_bytes=10, path=object_of(number), offset=4, object_size_bytes=30)
    )


def test_files_come_back_in_parts_each_once_with_all_vectors_it_ever_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retained, "PART_FILES", 100)
    monkeypatch.setattr(retained, "GATHERED_FILES", 30)
    files = RetainedFiles(facts=True)
    for number in range(1000):
        files.add({f"data/{number}": DataFileFacts(number, 10, crc=number, footer_crc=None)})
    for number in range(0, 1000, 10):
        again = DataFileFacts(number, 10, crc=number, vectors=frozenset([vector(number)]))
        files.add({f"data/{number}": again})
        files.add({f"data/{number}": DataFileFacts(number, 9, vectors=frozenset([vector(number + 1)]))})
    parts = list(files.parts())
    found_facts = {path: facts for part in parts for path, facts in part.items()}
    assert len(parts) == 12 and sum(map(len, parts)) == len(found_facts) == 1000
    assert max(map(len, parts)) < 200
    assert found_facts["data/7"] == DataFileFacts(7, 10, crc=7)
    both = frozenset([vector(20), vector(21)])
    assert found_facts["data/20"] == DataFileFacts(20, 9, vectors=both), "the last that is said of it"


def test_all_paths_are_known_and_those_of_vectors_but_not_of_what_was_forgotten() -> None:
    files = RetainedFiles()
    files.add({"data/gone": DataFileFacts(1, 1)})
    assert files
    files.forget()
    assert not files
    files.add({"data/1": DataFileFacts(1, 1, vectors=frozenset([vector(3)]))})
    asked_texts = ["data/1", object_of(3), "data/gone", "data/2"]
    assert are_among(hashes_of(asked_texts), files.named()).tolist() == [True, True, False, False]
    assert list(files.parts()) == []
