"""The options that every command shares, before or after its name. They select the catalog and the form of the
answer."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from lakelog.catalog import Catalog, LakelogError, Observation, engine
from lakelog.catalog.choices import WAREHOUSE_VARIABLE
from lakelog.catalog.names import identifier, quoted, quoted_where_needed
from lakelog.catalog.nearest import did_you_mean
from lakelog.cli.commands import VARIABLE
from lakelog.cli.locations import named
from lakelog.cli.verbose import Costs
from lakelog.log.stores import ENDPOINT_OPTIONS, endpoint_option

COMMAND_LINE = "lakelog.command_line"
"""The key in click's context for the command's name and the arguments after it."""


class Count(click.IntRange):
    """A number of entries, at least 1. A number that is longer than any list stands for all entries."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return min(int(super().convert(value, param, ctx)), 1 << 62)


class Choice(click.Choice[str]):
    """A word of a list of words. The error for any other word names the words that are like it."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        hint = did_you_mean(str(value), map(str, self.choices))
        return f"{super().get_invalid_choice_message(value, ctx)}{hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The warehouse, and the form of the answer."""

    warehouse: str | None
    endpoint: str | None
    region: str | None
    path_style: bool
    as_json: bool
    costs: Costs | None = None
    """The cost of each operation."""

    @property
    def store_options(self) -> dict[str, str]:
        """The store's options, as the catalog and Spark's settings spell them."""
        return self.store_options_of(self.warehouse or "")

    def store_options_of(self, url: str) -> dict[str, str]:
        """Return the options of stores if `--endpoint` is the server of this location; "" stands for any."""
        servers = [endpoint_option(url)] if url else sorted(ENDPOINT_OPTIONS)
        given = {
            **dict.fromkeys(servers, self.endpoint),
            "region": self.region,
            "path_style": "true" if self.path_style else None,
        }
        return {key: value for key, value in given.items() if value is not None}

    @property
    def required_warehouse(self) -> str:
        if self.warehouse is None:
            raise click.UsageError("No warehouse: give --warehouse, or set LAKELOG_WAREHOUSE")
        return self.warehouse

    def catalog(self, observe: Callable[[Observation], None] | None = None) -> Catalog:
        """Return the catalog of the warehouse. Raises NotFound if there is none, because commands do not create one.

        `observe` gets the cost of each operation, in place of `costs`.
        """
        # A conflict advises to run the command again, until the command ends.
        context = click.get_current_context(silent=True)  # None while a shell completes a name
        if context is not None:
            context.with_resource(engine.advising(engine.RUN_COMMAND))
        catalog = Catalog(self.required_warehouse, options=self.store_options, observe=observe or self.costs)
        engine.places(catalog).check_there()
        return catalog

    def catalog_as_of(self, moment: str) -> Catalog:
        """Return the catalog of the warehouse as of a time, or of the saved cut with that name. Raises NotFound."""
        catalog = Catalog(self.required_warehouse, options=self.store_options, as_of=moment)
        engine.places(catalog).check_there()
        return catalog

    def catalog_for(self, reference: str) -> Catalog:
        """Return the catalog to look `reference` up in. A location needs no warehouse."""
        if is_location(reference) and self.warehouse is None:
            return Catalog(reference, options=self.store_options, observe=self.costs)
        return self.catalog()


_QUOTED = re.compile(r"`(?:[^`]|``)*`")


def is_location(reference: str) -> bool:
    """Return whether a reference is a folder or URL: a part of a name that holds a slash is written in backticks."""
    return "/" in _QUOTED.sub("", reference)


if TYPE_CHECKING:
    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # of older versions of click it has no parameter


class _Reference(_Text):
    """A table or namespace by its name, or by its folder or URL. A command gets the name and its warehouse.

    A place without a name stays a place. So does the place of a log, which a command looks at on its own.
    """

    name = "reference"

    def __init__(self, *, is_table: bool = False, is_log: bool = False) -> None:
        self.is_table, self.is_log = is_table, is_log

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(name) for name in names_of_tables(ctx, param, incomplete)]


TABLE, REFERENCE, LOG = _Reference(is_table=True), _Reference(), _Reference(is_log=True)


def names_of_tables(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the namespaces (with a dot after them) and tables that begin so, for a shell that completes a name.

    Returns nothing if there is no warehouse, or if it cannot be read, because a shell that waits for completions
    shows no error.
    """
    place = _place_of(_shared_options(context, context.params))
    warehouse = place.warehouse or os.environ.get(WAREHOUSE_VARIABLE)
    if warehouse is None or is_location(incomplete):
        return []
    try:
        catalog = replace(place, warehouse=warehouse).catalog()
        inside = identifier(incomplete.rpartition(".")[0])
        names = [f"{quoted_where_needed(candidate)}." for candidate in catalog.list_namespaces(inside)]
        names += [quoted_where_needed(candidate) for candidate in catalog.list_tables(inside)]
    except LakelogError:
        return []
    # Bash puts a completion into the line unquoted, and would run its backticks or $(). Any client that may write to a
    # namespace can put these into a name. zsh and fish quote by themselves.
    is_bash = os.environ.get(VARIABLE, "").startswith("bash")
    return [
        name for name in names if name.startswith(incomplete) and (not is_bash or shlex.quote(name) == name)
    ]


def _resolved(place: Place, given: dict[str, Any]) -> Place:
    """Put names in the place of folders and URLs that a command was `given`, and return their warehouse."""
    parameters = click.get_current_context().command.params
    for parameter in parameters:
        value = given.get(parameter.name or "")
        if not isinstance(parameter.type, _Reference) or not isinstance(value, str) or not is_location(value):
            continue
        warehouse, name = named(value, place.store_options, place.warehouse)
        if name is not None and not parameter.type.is_log:
            if parameter.type.is_table and name == ():
                raise click.UsageError(
                    f"{value} is a warehouse, and not a table: give the name of a table in it, as lakelog ls "
                    f"{value} lists them"
                )
            given[str(parameter.name)] = quoted(name)
        place = replace(place, warehouse=warehouse)
    return place


_SHARED = (
    click.option(
        "--warehouse",
        envvar=WAREHOUSE_VARIABLE,
        metavar="URL",
        help="The folder, s3://, gs:// or abfss:// URL of the warehouse. [default: the variable LAKELOG_WAREHOUSE]",
    ),
    click.option("--endpoint", metavar="URL", help="The address of a server that is not the cloud's own."),
    click.option("--region", metavar="NAME", help="The region of the bucket."),
    click.option(
        "--path-style", is_flag=True, help="Put the bucket into the URL's path, as most S3 servers need."
    ),
    click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for programs."),
    click.option("--verbose", is_flag=True, help="Also print the requests that were made, on stderr."),
)
SHARED = ("warehouse", "endpoint", "region", "path_style", "as_json", "verbose")


def with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, or the group of all commands, the shared options."""
    for option in reversed(_SHARED):
        command = option(command)
    return command


def _shared_options(context: click.Context, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the shared options.

    An option after the command's name wins over the same option before it, and that over a variable.
    """
    root, values = context.find_root(), {name: parameters.get(name) for name in SHARED}
    for name in SHARED:
        is_own = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not is_own and root.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            values[name] = root.params[name]
    return values


def _place_of(shared_options: Mapping[str, Any]) -> Place:
    return Place(
        warehouse=shared_options["warehouse"],
        endpoint=shared_options["endpoint"],
        region=shared_options["region"],
        path_style=bool(shared_options["path_style"]),
        as_json=bool(shared_options["as_json"]),
        costs=Costs() if shared_options["verbose"] else None,
    )


def takes_place(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options. It receives them as a Place, its first argument."""

    @wraps(command)
    def with_place(**parameters: Any) -> None:
        shared_options = _shared_options(click.get_current_context(), parameters)
        own_options = {name: value for name, value in parameters.items() if name not in SHARED}
        place = _place_of(shared_options)
        with nullcontext() if place.costs is None else place.costs.reported():
            command(_resolved(place, own_options), **own_options)

    return with_shared_options(with_place)


def version_option(help: str = "As it was at that version.") -> Callable[..., Any]:
    """Declare the option for a version of a table."""
    return click.option("--version", type=int, metavar="N", help=help)


on_ref = click.option("--ref", metavar="NAME", help="As it is on that tag or branch.")
with_columns = click.option("--columns", metavar="A,B", help="These columns only.")


def changes_option(default: int) -> Callable[..., Any]:
    """Declare the option for the number of changes that a picture has."""
    return click.option(
        "--versions",
        type=Count(),
        default=default,
        show_default=True,
        metavar="N",
        help="Read the newest N changes.",
    )


def limit_option(what: str, default: int | None = None) -> Callable[..., Any]:
    """Declare the option for the largest number of entries."""
    return click.option(
        "--limit",
        type=Count(),
        default=default,
        show_default=True,
        metavar="N",
        help=f"The first N {what} only.",
    )
