"""The interface that a release promises: names of Python, commands, procedures, properties, settings, words of SQL.

`python -m programs.interface_list` prints it as JSON. `lost` compares an older list with a newer one.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from lakelog.catalog.core.schema.properties.known import INHERITED, KNOWN
from lakelog.cli.commands import MODULES, command_named
from lakelog.spark.configure import SparkSettings
from lakelog.spark.open_catalog import SETTINGS
from lakelog.spark.procedures import all_procedures

ROOT = Path(__file__).resolve().parents[2]
PYTHON_MODULES = (
    "lakelog.catalog",
    "lakelog.log.errors",
    "lakelog.spark",
    "lakelog.testing.fixtures",
    "lakelog.testing.memory_catalog",
    "lakelog.testing.moto_server",
    "lakelog.testing.s3a",
    "lakelog.testing.versitygw",
)
"""The modules that users import. Their names are public if they have no underscore and are made there."""

_SQL = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TEXTS = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"(?<![\w.$])[A-Z][A-Z_]+(?![\w.])")

Interface = dict[str, dict[str, Any]]


def interface() -> Interface:
    """Return the interface of this checkout, by kind and name."""
    return {
        "python": dict(sorted(_python())),
        "commands": {name: _command(command_named(name)) for name in sorted(MODULES)},
        "procedures": {
            name: {
                "required": [
                    parameter.name for parameter in procedure.parameters if parameter.default is None
                ],
                "optional": [
                    parameter.name for parameter in procedure.parameters if parameter.default is not None
                ],
                "members": [parameter.name for parameter in procedure.columns],
            }
            for name, procedure in sorted(all_procedures().items())
        },
        "properties": {name: {"default": KNOWN[name].default} for name in sorted({*KNOWN, *INHERITED})},
        "settings": {
            **{f"spark.sql.catalog.<name>.{name}": {} for name in sorted(SETTINGS)},
            **{f"configure({name}=…)": {} for name in sorted(SparkSettings.__annotations__)},
        },
        "sql": {words: {} for words in sorted(_words_of_sql())},
    }


def lost(before: Interface, now: Interface) -> list[str]:
    """Return a line for each thing that callers of the interface `before` would miss in `now`."""
    lines = []
    for kind, items in before.items():
        for name, item in items.items():
            if name not in now[kind]:
                lines.append(f"{kind}: {name} is gone")
                continue
            present = now[kind][name]
            parameters = {*present.get("required", ()), *present.get("optional", ())}
            for word in (*item.get("required", ()), *item.get("optional", ())):
                if word not in parameters and "**" not in parameters:
                    lines.append(f"{kind}: {name} does not take {word} any more")
            for word in set(present.get("required", ())) - set(item.get("required", ())):
                lines.append(f"{kind}: {name} requires {word} now")
            for word in set(item.get("members", ())) - set(present.get("members", ())):
                lines.append(f"{kind}: {name} has no {word} any more")
            if item.get("default") != present.get("default"):
                lines.append(f"{kind}: {name} has another default, {present.get('default')}")
            positional, present_positional = item.get("positional", []), present.get("positional", [])
            if present_positional[: len(positional)] != positional:
                lines.append(f"{kind}: {name} takes its arguments in another order")
    return sorted(lines)


def _python() -> Iterator[tuple[str, dict[str, Any]]]:
    for module_name in PYTHON_MODULES:
        module = import_module(module_name)
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", module_name) == module_name
        ]
        for name in names:
            value = getattr(module, name)
            path = f"{module_name}.{name}"
            if inspect.isclass(value):
                yield path, _class(value)
                for member, function in inspect.getmembers(value):
                    if not member.startswith("_") and callable(function) and _is_ours(function):
                        yield f"{path}.{member}", _parameters(function)
            elif callable(value) and _is_ours(value):
                yield path, _parameters(value)
            elif not inspect.ismodule(value):
                yield path, {}


def _is_ours(value: Any) -> bool:
    return str(getattr(inspect.unwrap(value), "__module__", "")).startswith("lakelog")


def _class(value: type) -> dict[str, Any]:
    """Return a class's attributes. It is called by users only if it is documented so: `Catalog`, errors, values."""
    attributes = {name for name, _ in inspect.getmembers(value) if not name.startswith("_")}
    attributes |= {name for name in getattr(value, "__annotations__", {}) if not name.startswith("_")}
    names_of_bases = {
        name for base in (Exception, dict, str) if issubclass(value, base) for name in dir(base)
    }
    members = {"members": sorted(attributes - names_of_bases)}
    if value.__module__ == "lakelog.catalog.catalog":
        return members | _parameters(value)
    return members


def _parameters(function: Any) -> dict[str, Any]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return {}
    parameters = [
        parameter
        for parameter in parameters
        if parameter.name != "self" and not parameter.name.startswith("_")
    ]
    by_kind: dict[str, list[str]] = {"required": [], "optional": [], "positional": []}
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            by_kind["optional"].append("**")
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        by_kind["required" if parameter.default is parameter.empty else "optional"].append(parameter.name)
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            by_kind["positional"].append(parameter.name)
    return {kind: names for kind, names in by_kind.items() if names}


def _command(command: click.Command | None) -> dict[str, Any]:
    assert command is not None
    required, optional = list[str](), list[str]()
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            names = [str(parameter.name).upper()]
        else:
            names = [*parameter.opts, *parameter.secondary_opts]
        (required if parameter.required else optional).extend(names)
    return {"required": sorted(required), "optional": sorted(optional)}


def _words_of_sql() -> set[str]:
    """Return the words in capitals of each statement on the pages of SQL, which a parser has to know."""
    forms = set()
    for page in sorted((ROOT / "docs/sql").glob("*.md")):
        for block in _SQL.findall(page.read_text(encoding="utf-8")):
            for statement in _TEXTS.sub(" ", block).split(";"):
                words = _WORD.findall(statement)
                if words:
                    forms.add(" ".join(dict.fromkeys(words)))
    return forms


def text_of(listed: Mapping[str, Any]) -> str:
    """Return the list as the text that is kept of a release."""
    return json.dumps(listed, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(text_of(interface()), end="")
