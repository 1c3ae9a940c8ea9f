"""Every command and option explains itself, and stands in the page about the command."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click
import pytest

from lakelog.cli import main
from lakelog.cli.main import cli

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


COMMANDS = {name: cli.get_command(click.Context(cli), name) for name in cli.list_commands(click.Context(cli))}


def commands() -> list[tuple[str, click.Command]]:
    return sorted(COMMANDS.items())


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_command_has_help(name: str, command: click.Command) -> None:
    assert command.help and command.get_short_help_str(), name


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_option_has_help(name: str, command: click.Command) -> None:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name}"


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_command_and_option_is_on_the_page(name: str, command: click.Command) -> None:
    assert f"`lakelog {name}" in PAGE, name
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for spelling in parameter.opts:
                assert f"`{spelling}" in PAGE, f"lakelog {name} {spelling}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_no_command_or_script_that_is_not_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Commands are shown in blocks, indented or fenced, and in spans.
    fenced = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.S))
    named = {
        *re.findall(r"^(?:    |\$ )lakelog ([a-z-]+)", text, re.M),
        *re.findall(r"^lakelog ([a-z-]+)", fenced, re.M),
        *re.findall(r"`lakelog ([a-z][a-z-]*)", text),
    }
    assert named <= set(COMMANDS)
    for script in set(re.findall(r"scripts/[a-z_]+", text)):
        assert (ROOT / script).exists(), script


def test_a_command_is_looked_for_in_the_module_that_has_it() -> None:
    for module, names in main._COMMANDS.items():
        assert names == tuple(each.name for each in import_module(f"lakelog.cli.{module}").COMMANDS)
    assert cli.get_command(click.Context(cli), "nothing") is None
