"""The features of tables and namespaces: the code says what catalog/README.md says, and finds each in lists too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap

from lakelog.catalog.core.files import inline_deletes
from lakelog.catalog.core.files.data_file import DataFile, encode_files
from lakelog.catalog.core.files.deletion_vectors import DeletionVector
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import TypedValue
from lakelog.catalog.core.state import features
from lakelog.catalog.core.state.events import FilesChanged, encode
from lakelog.log import Commit, FeatureNames
from lakelog.log.format import FEATURES

README = Path(__file__).parents[4] / "catalog" / "README.md"


def test_the_document_has_the_features_of_the_code() -> None:
    section = README.read_text().split("\n## Features\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{f.name}` | {f.needs} | {f.about} | {f.follows} |" for f in features.FEATURES]


def test_a_name_is_of_one_feature() -> None:
    names = [feature.name for feature in features.FEATURES]
    assert len({*names, *FEATURES}) == len(names) + len(FEATURES)


FAR = DeletionVector(
    rows=1, size_bytes=20, crc=1, path="s3://b/w/t-a/data/x.puffin", offset=24, object_size_bytes=90
)
FILES: list[tuple[dict[str, Any], set[str]]] = [
    ({}, set()),
    ({"deletes": inline_deletes(BitMap([1]))}, {"deletion-vectors"}),
    ({"deletes": FAR}, {"deletion-vectors", "absolute-paths"}),
    ({"path": "s3://b/one.parquet"}, {"absolute-paths"}),
    ({"path": "/one.parquet"}, {"absolute-paths"}),
    ({"names": {1: "a"}}, {"foreign-files"}),
    ({"names": {}}, {"foreign-files"}),
    ({"constants": {1: TypedValue(type="long", value=1)}}, {"foreign-files"}),
]


@pytest.mark.parametrize(("members", "expected"), FILES)
@pytest.mark.parametrize("in_list", [False, True])
def test_what_files_use_is_found_in_events_and_in_lists(
    members: dict[str, Any], expected: set[str], in_list: bool
) -> None:
    plain = DataFile(path="data/a.parquet", size_bytes=1, rows=1)
    file = DataFile(**{"path": "data/b.parquet", "size_bytes": 1, "rows": 3, **members})
    blobs: tuple[bytes, ...] = ()
    event = FilesChanged(operation="append", added=(plain, file))
    if in_list:
        blobs = (encode_files([plain, file], Schema(fields=(), last_id=0), ()),)
        event = FilesChanged(operation="append", added_sidecar=0)
    commit = Commit(
        format=1, log_id="l", version=2, commit_id="c", attempt_id="a", base=1, prev="", time_us=1,
        events=encode([event]),
    )  # fmt: skip
    used_names = features.used_by(commit, blobs)
    assert used_names == FeatureNames(frozenset(expected))
