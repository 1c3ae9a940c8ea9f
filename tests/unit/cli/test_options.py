"""A table is meant by its name or by its place, and shared options stand before or after a command's name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click
import pytest

from lakelog.cli import options
from lakelog.cli.commands import MODULES, command_named
from lakelog.cli.main import run
from lakelog.cli.options import Place, is_location


@pytest.mark.parametrize("reference", ["/a/t", "./t", "folder/t", "s3://b/t", "file:/a/t", "/odd`folder/t"])
def test_a_path_or_url_is_a_place(reference: str) -> None:
    assert is_location(reference)


@pytest.mark.parametrize("reference", ["t", "a.b.t", "a.`b/c`", "`a/b`.t", "`a``/b`", ""])
def test_a_slash_in_backticks_belongs_to_a_name(reference: str) -> None:
    assert not is_location(reference)


SHARED = (
    "--warehouse",
    "/w",
    "--endpoint",
    "http://s3",
    "--region",
    "r",
    "--path-style",
    "--json",
    "--verbose",
)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_shared_options_stand_before_or_after_the_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may be on either side. After the name wins over before, and both win over the variable."""
    command = command_named(name)
    assert command is not None
    if name in ("completion", "help"):
        assert run([*SHARED, name, *(["bash"] if name == "completion" else [])]) == 0
        return
    monkeypatch.setenv("LAKELOG_WAREHOUSE", "/of-the-variable")
    required_arguments = arguments_of(command)
    seen_place = place_of(monkeypatch, [name, *required_arguments, *SHARED])
    assert seen_place == place_of(monkeypatch, [*SHARED, name, *required_arguments])
    assert (seen_place.warehouse, seen_place.endpoint, seen_place.region) == ("/w", "http://s3", "r")
    assert seen_place.path_style and seen_place.as_json
    for at in (2, 4, 6, 7, 8):
        assert seen_place == place_of(monkeypatch, [*SHARED[:at], name, *required_arguments, *SHARED[at:]])
    both = place_of(
        monkeypatch, ["--warehouse", "/before", name, *required_arguments, "--warehouse", "/after"]
    )
    assert both.warehouse == "/after"
    assert place_of(monkeypatch, [name, *required_arguments]).warehouse == "/of-the-variable"


def arguments_of(command: click.Command) -> list[str]:
    """Return what a command requires."""
    words: list[str] = []
    for part in command.params:
        if part.required:
            value = part.type.choices[0] if isinstance(part.type, click.Choice) else "1"
            words += [str(value)] if isinstance(part, click.Argument) else [part.opts[0], str(value)]
    return words


def place_of(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> Place:
    """Return the place that a command line selects. Nothing is run."""
    seen_places: list[Place] = []

    def resolved_place(place: Place, given: dict[str, Any]) -> Place:
        seen_places.append(place)
        raise click.exceptions.Exit(0)

    monkeypatch.setattr(options, "_resolved", resolved_place)
    assert run(arguments) == 0
    [place] = seen_places
    return replace(place, costs=None)
