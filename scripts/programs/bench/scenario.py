"""A scenario is a module below `scenarios/`: a docstring, and a generator `measure`.

The docstring states the measurements, their units, and the goal. The parameters of `measure` are the options of the
command line. Each has a default, and a help text if its annotation has a text. `measure` yields rows and remarks. A row
maps a column to a text, a number or several numbers, and a remark is a text.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

Row = Mapping[str, Any]
Rows = Iterator[Row | str]

FOLDER = Path(__file__).parent / "scenarios"
PROGRAM = "scripts/bench"


@dataclass(frozen=True)
class Scenario:
    name: str
    group: str

    @property
    def doc(self) -> str:
        """The docstring. The module is not imported, because libraries that it needs may be missing."""
        return ast.get_docstring(ast.parse((FOLDER / self.group / f"{self.name}.py").read_text())) or ""

    @property
    def summary(self) -> str:
        return " ".join(self.doc.partition("\n\n")[0].split())

    @property
    def measure(self) -> Callable[..., Rows]:
        measure: Callable[..., Rows] = importlib.import_module(
            f"programs.bench.scenarios.{self.group}.{self.name}"
        ).measure
        return measure


def say(text: str) -> None:
    """Report progress, apart from the measurements."""
    print(text, file=sys.stderr, flush=True)


def scenarios() -> dict[str, Scenario]:
    return {path.stem: Scenario(path.stem, path.parent.name) for path in sorted(FOLDER.glob("*/*.py"))}


def arguments_of(scenario: Scenario, words: Sequence[str]) -> dict[str, Any]:
    """Return the values of the parameters, and of `json`."""
    values = vars(parser_of(scenario).parse_args(words))
    # Several values stand in a single word, with commas, or in several words.
    return {name: _joined(value) for name, value in values.items()}


def parser_of(scenario: Scenario) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {scenario.name}",
        description=scenario.doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    hints = typing.get_type_hints(scenario.measure, include_extras=True)
    for parameter in inspect.signature(scenario.measure).parameters.values():
        _declare(parser, parameter, hints[parameter.name])
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    return parser


def _declare(parser: argparse.ArgumentParser, parameter: inspect.Parameter, hint: Any) -> None:
    about = ""
    if typing.get_origin(hint) is typing.Annotated:
        hint, about = typing.get_args(hint)
    option = f"--{parameter.name.replace('_', '-')}"
    if hint is bool:
        parser.add_argument(option, action="store_true", help=about)
        return
    settings: dict[str, Any] = {"default": parameter.default}
    if typing.get_origin(hint) is Sequence:
        (hint,) = typing.get_args(hint)
        settings |= {"nargs": "*"}
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
    settings["type"] = partial(_several if "nargs" in settings else _one, str if choices else hint, choices)
    default = " ".join(map(str, parameter.default)) if "nargs" in settings else parameter.default
    about = "; ".join(filter(None, [about, f"of {', '.join(choices)}" if choices else ""]))
    parser.add_argument(option, **settings, help=f"{about} (default: {default})".replace("%", "%%").strip())


def _one(kind: Callable[[str], Any], choices: Sequence[str], text: str) -> Any:
    if choices and text not in choices:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(choices)}")
    return kind(text)


def _several(kind: Callable[[str], Any], choices: Sequence[str], text: str) -> tuple[Any, ...]:
    return tuple(_one(kind, choices, word) for word in text.split(","))


def _joined(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [item for part in value for item in (part if isinstance(part, tuple) else [part])]
