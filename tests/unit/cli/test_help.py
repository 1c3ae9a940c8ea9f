"""Every command and option explains itself, and stands in the README."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from lakelog.cli.main import cli

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")


def commands() -> list[tuple[str, click.Command]]:
    return sorted(cli.commands.items())


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_command_has_help(name: str, command: click.Command) -> None:
    assert command.help and command.get_short_help_str(), name


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_option_has_help(name: str, command: click.Command) -> None:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name}"


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_command_and_option_is_documented_in_the_readme(name: str, command: click.Command) -> None:
    assert f"`lakelog {name}" in README, name
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for spelling in parameter.opts:
                assert f"`{spelling}" in README, f"lakelog {name} {spelling}"


def test_the_readme_names_no_command_that_is_not_there() -> None:
    named = set(re.findall(r"`lakelog ([a-z][a-z-]*)", README)) | set(
        re.findall(r"^\$? ?lakelog ([a-z-]+)", README, re.M)
    )
    assert named <= set(cli.commands)


def test_the_readme_names_no_script_that_is_not_there() -> None:
    for script in set(re.findall(r"scripts/[a-z_]+", README)):
        assert (Path(__file__).parents[3] / script).exists(), script
