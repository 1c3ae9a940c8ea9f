"""Commands of operations, with the names, arguments, options and help that `lakelog.catalog.operations` declares.

    @command_of(EXPIRE)
    def expire(place: Place, name: str, **given: Any) -> None:
        logs = place.catalog_for(name).expire(…, **given)

Rule: a command that has `--dry-run` has `--apply` too, whichever of them is the default. A report ends by the command
that acts.
"""

from __future__ import annotations

import datetime as dt
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from lakelog.catalog import Catalog
from lakelog.catalog.names import identifier
from lakelog.catalog.operations.declare import DRY_RUN, SCOPE, DeclaredOperation, OperationParameter
from lakelog.catalog.times import age_of
from lakelog.cli import answer
from lakelog.cli.commands import PROGRAM
from lakelog.cli.options import COMMAND_LINE, REFERENCE, TABLE, Choice, is_location, takes_place
from lakelog.log.secrets import masked_urls

Decorator: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]

_SIZE = re.compile(r"([0-9]{1,18})(B|kB|MB|GB|TB)?")
_UNITS = {None: 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def age(context: click.Context, parameter: click.Parameter, value: str | None) -> dt.timedelta | None:
    """Read an age as people write it: 90s, 30m, 12h, 7d, 2w."""
    if value is None:
        return None
    value_as_age = age_of(value)
    if value_as_age is None:
        raise click.BadParameter(f"{value!r} is not an age: write 90s, 30m, 12h, 7d or 2w")
    return value_as_age


def size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Read a size as people write it: 500MB, 20GB."""
    if value is None:
        return None
    match = _SIZE.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not a size: write 500MB or 20GB")
    return int(match[1]) * _UNITS[match[2]]


_CALLBACKS: dict[str | None, Any] = {"AGE": age, "SIZE": size}
_TYPES: dict[str | None, Any] = {
    "TABLE": TABLE,
    "N": click.IntRange(min=1),
    "SHARE": click.FloatRange(0, 1),
    "PEM": click.Path(exists=True, dir_okay=False),
}
_ARGUMENTS = {"place": "at"}
"""Of functions the argument `place` is the warehouse."""

_SCOPE = click.argument("name", metavar="[TABLE|NAMESPACE]", default="", type=REFERENCE)


def command_of(
    operation: DeclaredOperation, *own: Decorator, without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a function the command of an operation.

    It receives the place, and the parameters under their names; the table or the namespace that it is about is its
    `name`, "" for the whole warehouse. `own` are arguments and options of the command alone. Parameters that it takes
    in another way than others do are left out by `without`.
    """
    scope = operation.has_scope and "table" not in without
    left_out = {*without, *(parameter.name for parameter in SCOPE if operation.has_scope)}
    parameters = [
        parameter
        for parameter in operation.parameters
        if parameter.in_command and parameter.name not in left_out
    ]
    parts: list[Decorator] = [*map(_taken, parameters), *([_SCOPE] if scope else []), *own]

    def made(function: Callable[..., None]) -> click.Command:
        command = takes_place(function)
        for decorator in reversed(parts):
            command = decorator(command)
        text = f"{operation.summary}\n\n{operation.details.strip()}"
        return click.command(operation.command_name, help=text, short_help=operation.summary)(command)

    return made


def _taken(parameter: OperationParameter) -> Decorator:
    """Return the argument or the option for a parameter."""
    name, metavar = parameter.name, parameter.metavar
    kind: Any = Choice(parameter.choices, case_sensitive=False) if parameter.choices else _TYPES.get(metavar)
    if parameter.default is None and parameter.option is None:
        return click.argument(_ARGUMENTS.get(name, name), metavar=name.upper(), type=kind)
    help = f"{parameter.comment[:1].upper()}{parameter.comment[1:]}."
    if parameter.unset is not None:
        help += f" [default: {parameter.unset}]"
    spelling = parameter.option or f"--{name.replace('_', '-')}"
    if parameter.type == "BOOLEAN":
        if name == DRY_RUN:
            spelling, help = "--dry-run/--apply", "Only report what would be done, or do it."
        is_pair = "/" in spelling
        is_on = parameter.default == "true"
        return click.option(spelling, name, is_flag=True, default=is_on, show_default=is_pair, help=help)
    # Click takes a default of None for a value that was given, and would not miss a required option then.
    has_default = parameter.default is not None and not parameter.nullable
    default: dict[str, Any] = {"default": str(parameter.default).strip("'")} if has_default else {}
    return click.option(
        spelling,
        name,
        type=kind,
        metavar=metavar,
        show_default=has_default,
        required=parameter.default is None,
        callback=_CALLBACKS.get(metavar),
        help=help,
        **default,
    )


def say_nothing_changed() -> None:
    """Print that this was a report, and the command that acts."""
    root = click.get_current_context().find_root()
    command, *arguments = root.meta[COMMAND_LINE]
    options_before = root.obj[: len(root.obj) - len(arguments) - 1]
    options_after = [argument for argument in arguments if argument not in ("--dry-run", "--apply")]
    acting_line = [PROGRAM, *options_before, command, "--apply", *options_after]
    answer.say(f"Nothing was changed. To do it: {masked_urls(shlex.join(acting_line))}")


def chosen(catalog: Catalog, name: str) -> dict[str, Any]:
    """Return the meaning of a name: a place, a table, else a namespace."""
    if is_location(name):
        return {"location": name}
    path = identifier(name)
    return {"table": path} if path and catalog.table_exists(path) else {"namespace": path}


def counted(number: int, what: str) -> str:
    return f"{answer.count(number)} {what}{'' if number == 1 else 's'}"
