"""What a release promises stays: Python's names, commands, procedures, properties, settings and words of SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakelog.spark import jar
from programs.interface_list import Interface, interface, lost, text_of

KEPT = Path(__file__).parents[1] / "format/interface"
ENDED: dict[str, str] = {}
"""What is no longer there, as `lost` says it, by the release whose notes and warnings announced it."""


def numbers_of(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3])


def test_the_list_of_this_version_is_complete() -> None:
    listed_text = (KEPT / f"{jar.version()}.json").read_text(encoding="utf-8")
    assert listed_text == text_of(interface()), (
        "the interface differs from its list: run `python -m programs.interface_list > "
        f"tests/format/interface/{jar.version()}.json`, unless that version is released"
    )


def test_nothing_of_an_older_release_is_gone_without_notice() -> None:
    current_interface = interface()
    for path in sorted(KEPT.glob("*.json")):
        removed_texts = lost(json.loads(path.read_text(encoding="utf-8")), current_interface)
        assert [line for line in removed_texts if line not in ENDED] == [], path.name
    for announced_text in ENDED.values():
        assert numbers_of(announced_text)[:2] < numbers_of(jar.version())[:2]


def having_interface(**item: Any) -> Interface:
    return {"python": {"f": item}}


@pytest.mark.parametrize(
    ("before", "now", "line"),
    [
        (having_interface(), {"python": {}}, "python: f is gone"),
        (having_interface(optional=["a"]), having_interface(), "python: f does not take a any more"),
        (having_interface(optional=["a"]), having_interface(required=["a"]), "python: f requires a now"),
        (having_interface(members=["m"]), having_interface(members=["n"]), "python: f has no m any more"),
        (having_interface(default="1"), having_interface(default="2"), "python: f has another default, 2"),
        (
            having_interface(positional=["a", "b"]),
            having_interface(positional=["b", "a"]),
            "python: f takes its arguments in another order",
        ),
    ],
)
def test_a_loss_is_found(before: Interface, now: Interface, line: str) -> None:
    assert lost(before, now) == [line]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (having_interface(required=["a"]), having_interface(optional=["a", "b"], positional=["a"])),
        (
            having_interface(positional=["a"], optional=["a"]),
            having_interface(positional=["a", "b"], optional=["a", "b"]),
        ),
        (having_interface(optional=["a"]), having_interface(optional=["**"])),
        (having_interface(members=["m"]), having_interface(members=["m", "n"])),
    ],
)
def test_an_addition_is_no_loss(before: Interface, now: Interface) -> None:
    assert lost(before, now) == []
