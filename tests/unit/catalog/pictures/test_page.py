"""A page is one file that needs nothing else, is never too large, and holds texts of others as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from tests.unit.catalog.pictures.pictures import change, many, picture

from lakelog.catalog.looking.pictures.model import (
    ChangePicture,
    ColumnPicture,
    DefinitionPicture,
    FilePicture,
    LayoutPicture,
    LogPicture,
    PartitionPicture,
)
from lakelog.catalog.looking.pictures.page import SIZE_MAX, columns, folded, framed, page_of

HOSTILE = (
    "</script><img src=x onerror=alert(1)><!-- <script> \u202egnp.exe\x1b[31m\u2066 & {{data}} {{script}}"
)


class Parts(HTMLParser):
    """What a browser would see: elements with their attributes, and the texts of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.texts:
            self.texts[self._inside].append(data)


def data_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Parts(page).texts["script"][0])
    return found


def test_ten_thousand_versions_take_less_than_two_megabytes_and_none_is_folded() -> None:
    page = page_of(many(10_000))
    assert len(page.encode()) < 2_000_000
    assert data_of(page)["changes"]["length"] == 10_000 and not data_of(page)["left_out"]


def test_any_number_of_versions_fits_and_what_is_folded_is_said() -> None:
    page = page_of(many(60_000))
    data = data_of(page)
    assert len(page.encode()) <= SIZE_MAX
    assert data["changes"]["length"] < 10_500
    assert any("50,000 older changes are folded" in text for text in data["left_out"])


def test_whatever_a_picture_holds_the_page_is_not_larger_and_says_what_it_leaves_out() -> None:
    wide = DefinitionPicture(
        version=1,
        columns=tuple(
            ColumnPicture(id=id, name=f"column{id}", type="string", comment="c" * 300) for id in range(1500)
        ),
    )
    layout = LayoutPicture(
        file_count=10**6,
        rows=1,
        size_bytes=1,
        target_bytes=1,
        partitions=tuple(
            PartitionPicture(values="v" * 200, files=1, rows=1, size_bytes=1) for _ in range(3500)
        ),
        files=tuple(
            FilePicture(path="p" * 500, partition="q" * 500, rows=1, size_bytes=1) for _ in range(600)
        ),
    )
    large = picture(
        [change(version, statement=f"INSERT {version} " + "x" * 5000) for version in range(4_000, 0, -1)],
        definitions=tuple(msgspec.structs.replace(wide, version=version) for version in range(1, 40)),
        layout=layout,
        logs=tuple(LogPicture(kind="table", name="n" * 400, location="l" * 400) for _ in range(3500)),
    )
    page = page_of(large)
    assert len(page.encode()) <= SIZE_MAX
    text = " ".join(data_of(page)["left_out"])
    assert "definitions are not shown" in text and "logs are not shown" in text


def test_what_others_wrote_stays_text() -> None:
    hostile = picture(
        [change(1, text=HOSTILE, statement=HOSTILE, operation=HOSTILE, commit_id=HOSTILE)],
        name=HOSTILE,
        location=HOSTILE,
        logs=(LogPicture(kind="table", name=HOSTILE, location=HOSTILE),),
        definitions=(
            DefinitionPicture(
                version=1,
                columns=(ColumnPicture(id=1, name=HOSTILE, type=HOSTILE),),
                properties={HOSTILE: HOSTILE},
            ),
        ),
    )
    page = page_of(hostile)
    plain = page_of(picture([change(1)]))
    assert [tag for tag, _ in Parts(page).elements] == [tag for tag, _ in Parts(plain).elements]
    assert "\u202e" not in page and "\u2066" not in page and "\x1b" not in page
    data = data_of(page)
    text = HOSTILE.replace("\u202e", "\\u202e").replace("\u2066", "\\u2066").replace("\x1b", "\\x1b")
    assert data["name"] == text and data["definitions"][0]["properties"] == {text: text}
    assert data["changes"]["statement"]["values"] == [text]


def test_nothing_of_a_page_is_fetched_or_handled_inline() -> None:
    page = page_of(many(3))
    parts = Parts(page)
    attributes = {name for _, given in parts.elements for name in given}
    assert not {name for name in attributes if name.startswith("on")} and "style" not in attributes
    assert not {"src", "action", "srcdoc", "data"} & attributes
    assert [given["href"] for _, given in parts.elements if "href" in given] == ["#main"]
    policy = next(given["content"] for tag, given in parts.elements if given.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for text in (parts.texts["script"][1], parts.texts["style"][0]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    code = parts.texts["script"][1]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|XMLHttp|import\(", code
    )


def test_a_frame_for_notebooks_holds_the_page_as_an_attribute() -> None:
    (tag, given), *remaining_pairs = Parts(framed(picture([change(1, text=HOSTILE)], name='"><b>'))).elements
    assert tag == "iframe" and not remaining_pairs
    assert given["sandbox"] == "allow-scripts" and (given["srcdoc"] or "").startswith("<!doctype html>")


def test_folds_keep_the_sums_and_the_damage() -> None:
    changes = [change(version) for version in range(1000, 0, -1)]
    changes[990] = ChangePicture(kind="damage", version=10, text="version 10 is missing")
    pictures, count = folded(changes, 100)
    assert pictures[:100] == changes[:100] and count == 900
    assert sum(picture.count for picture in pictures) == 999  # without the one that is damaged
    assert sum(picture.added_rows for picture in pictures) == sum(change.added_rows for change in changes)
    assert [picture.text.split(",")[0] for picture in pictures if picture.kind == "damage"] == [
        "version 10 is missing"
    ]
    assert pictures[100].version == 900 and pictures[-1].first_version == 1


@pytest.mark.parametrize("count", [0, 1, 7])
def test_columns_hold_what_rows_do(count: int) -> None:
    changes = [change(version) for version in range(count, 0, -1)]
    found_columns = columns(changes)
    assert found_columns.pop("length") == count
    for name, column in found_columns.items():
        if "steps" in column:
            total, values = 0, []
            for step in column["steps"]:
                total += step
                values.append(total)
        else:
            values = column.get("values") or [column["of"][place] for place in column["at"]]
        assert values == [getattr(change, name) for change in changes]
    left_out = {
        field.name: field.default
        for field in msgspec.structs.fields(ChangePicture)
        if field.name not in found_columns
    }
    assert all(
        getattr(change, name) == default
        for change in changes
        for name, default in left_out.items()
        if name != "version"
    )
