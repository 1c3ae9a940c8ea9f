"""Every command and option explains itself, and stands in the page about the command."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click
import pytest

from lakelog.catalog.operations.every import EVERY
from lakelog.cli import main
from lakelog.cli.commands import (
    ELSEWHERE,
    GROUPS,
    MODULES,
    OTHER_OPTIONS,
    OTHER_WORDS,
    summary_of,
)
from lakelog.cli.main import cli
from lakelog.cli.options import SHARED

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
    """Parameters of a procedure are on the page that is made of its declaration."""
    assert f"`lakelog {name}" in PAGE, name
    declared_names = {
        parameter.name for of in EVERY if of.command_name == name for parameter in of.parameters
    }
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in declared_names:
            for spelling in parameter.opts:
                assert f"`{spelling}" in PAGE, f"lakelog {name} {spelling}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_no_command_or_script_that_is_not_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Commands are shown in blocks, indented or fenced, and in spans.
    fenced_text = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.S))
    matches = {
        *re.findall(r"^(?:    |\$ )lakelog ([a-z-]+)", text, re.M),
        *re.findall(r"^lakelog ([a-z-]+)", fenced_text, re.M),
        *re.findall(r"`lakelog ([a-z][a-z-]*)", text),
    }
    assert matches <= set(COMMANDS)
    for script in set(re.findall(r"scripts/[a-z_]+", text)):
        assert (ROOT / script).exists(), script


def test_a_command_is_looked_for_in_the_module_that_has_it() -> None:
    for module in set(MODULES.values()):
        names = {each.name for each in import_module(f"lakelog.cli.{module}").COMMANDS}
        assert names == {name for name, its_module in MODULES.items() if its_module == module}
    assert cli.get_command(click.Context(cli), "nothing") is None


@pytest.mark.parametrize(("name", "command"), commands())
def test_a_summary_is_a_sentence_that_fits_a_line(name: str, command: click.Command) -> None:
    summary = summary_of(command)
    assert re.fullmatch("[A-Z][^.]*[.]", summary) and len(summary) <= 60, f"{name}: {summary}"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("arguments", [("--help",), ("help",)])
def test_the_list_of_commands_has_all_of_them_with_whole_summaries(
    arguments: tuple[str, ...],
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main.run(arguments) == 0
    text = capsys.readouterr().out
    words = " ".join(text.split())
    for name, command in commands():
        assert f" {name} {summary_of(command)}" in words
    for title in GROUPS:
        assert f"\n{title}:\n" in text
    assert "…" not in text and "..." not in text.replace("[ARGS]...", "")
    assert max(map(len, text.splitlines())) <= width


def test_help_of_a_command_is_what_its_option_prints(capsys: pytest.CaptureFixture[str]) -> None:
    for name in MODULES:
        assert main.run(["help", name]) == 0
        text = capsys.readouterr().out
        assert main.run([name, "--help"]) == 0
        assert capsys.readouterr().out == text


def test_without_a_command_five_things_to_do_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    matches = re.findall(r"^  lakelog ([a-z]+) ", printed.err, re.M)
    assert len(matches) == 5 and set(matches) <= set(COMMANDS)
    assert f"lists all {len(COMMANDS)} commands" in " ".join(printed.err.split())


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("lss", "Did you mean ls?"),
        ("mantain", "Did you mean maintain?"),
        ("hlep", "Did you mean help?"),
        ("hist", "Did you mean history?"),
        ("log", "Did you mean history?"),
        ("gc", "Did you mean vacuum?"),
        ("list", "Did you mean ls?"),
        ("DESCRIBE", "Did you mean show?"),
        ("optimize", "Did you mean compact?"),
        ("optimise", "Did you mean compact?"),
        ("verify_backup", "Did you mean verify-backup?"),
        ("compa", "Did you mean compact?"),
        ("rm", "No command does that: use DROP TABLE"),
        ("shop.orders", "A command comes first: lakelog show shop.orders."),
    ],
)
def test_a_mistyped_command_is_answered_by_the_command_it_means(
    typed: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in ([typed], ["help", typed]):
        assert main.run(arguments) == 2
        assert f"No such command '{typed}'. {said}" in capsys.readouterr().err


def test_what_is_like_no_command_gets_no_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["xyzzy"]) == 2
    assert capsys.readouterr().err == "lakelog: No such command 'xyzzy'. (see lakelog --help)\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ls", "--warehose", "x"), "Did you mean --warehouse?"),
        (("--warehose", "x", "ls"), "Did you mean --warehouse?"),
        (("expire", "--yes"), "Did you mean --apply?"),
        (("expire", "--retain", "3"), "Did you mean --retain-last?"),
        (("head", "t", "--filter", "x"), "Did you mean --where?"),
        (("inspect", "t", "filez"), "Did you mean files?"),
        (("import", "a", "t", "--format", "iceburg"), "Did you mean iceberg?"),
    ],
)
def test_a_mistyped_option_or_word_is_answered_by_what_it_means(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == 2
    assert said in capsys.readouterr().err


def test_every_other_word_means_a_command_or_an_option() -> None:
    other_words = [word for words in OTHER_WORDS.values() for word in words]
    other_words += [word for words in ELSEWHERE for word in words]
    assert OTHER_WORDS.keys() <= MODULES.keys() and not set(other_words) & MODULES.keys()
    assert len(other_words) == len(set(other_words))
    options = {option for _, command in commands() for part in command.params for option in part.opts}
    options |= {
        option for _, command in commands() for part in command.params for option in part.secondary_opts
    }
    assert OTHER_OPTIONS.keys() - {"--help"} <= options


SAME_OPTIONS = ("ref", "columns", "as_of", "dry_run", "trust_clock", *SHARED)


def test_an_option_has_the_same_words_in_every_command() -> None:
    texts: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for part in command.params:
            if isinstance(part, click.Option) and part.name in SAME_OPTIONS:
                texts.setdefault(part.name, set()).add((part.help or "").split(" [")[0])
    assert texts.keys() == set(SAME_OPTIONS) and all(
        len(reported_texts) == 1 for reported_texts in texts.values()
    ), texts


def test_the_page_has_the_groups_of_commands_in_their_order() -> None:
    sections = re.findall(r"^### (.*)\n((?:(?!^#).*\n)*)", PAGE, re.M)
    assert [title for title, _ in sections] == list(GROUPS)
    for title, text in sections:
        assert re.findall("`lakelog ([a-z-]+) ?[^`]*`(?=[,| ].*\\|.*\\|)", text) == list(GROUPS[title])


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize(("name", "command"), commands())
def test_help_fits_the_terminal(
    name: str,
    command: click.Command,
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks that are laid out by hand are as wide as they are, 80 columns at most."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert main.run([name, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    has_blocks = "\b" in (command.help or "")
    assert max(map(len, lines)) <= (80 if has_blocks else width)


def test_a_full_disk_is_answered_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main.run(["help"]) == 1
        monkeypatch.undo()
    assert "lakelog: " in (error := capsys.readouterr().err) and "No space left" in error
