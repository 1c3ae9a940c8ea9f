"""The options that every command shares, and what they select: a catalog, and the form of the answer."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from lakelog.catalog import Catalog, LakelogError
from lakelog.catalog.names import identifier, quoted, quoted_where_needed
from lakelog.cli.completion import VARIABLE
from lakelog.cli.locations import named
from lakelog.cli.verbose import Costs


class Count(click.IntRange):
    """So many things, one at least. A number that no list can be as long as stands for all."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return min(int(super().convert(value, param, ctx)), 1 << 62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The warehouse, and the form of the answer."""

    warehouse: str | None
    endpoint: str | None
    region: str | None
    path_style: bool
    as_json: bool
    costs: Costs | None = None
    """What each operation has cost."""

    @property
    def store_options(self) -> dict[str, str]:
        """The store's options, as the catalog and Spark's settings spell them."""
        given = {
            "endpoint": self.endpoint,
            "region": self.region,
            "path_style": "true" if self.path_style else None,
        }
        return {key: value for key, value in given.items() if value is not None}

    @property
    def required_warehouse(self) -> str:
        if self.warehouse is None:
            raise click.UsageError("No warehouse: give --warehouse, or set LAKELOG_WAREHOUSE")
        return self.warehouse

    def catalog(self) -> Catalog:
        """Return the catalog of the warehouse. NotFound where there is none: commands read, and set up nothing."""
        catalog = Catalog(self.required_warehouse, options=self.store_options, observe=self.costs)
        catalog.places.check_there()
        return catalog

    def catalog_as_of(self, moment: str) -> Catalog:
        """Return the catalog of the warehouse as of a time, or as a saved cut of that name has it. NotFound."""
        catalog = Catalog(self.required_warehouse, options=self.store_options, as_of=moment)
        catalog.places.check_there()
        return catalog

    def catalog_for(self, reference: str) -> Catalog:
        """Return the catalog to look `reference` up in; what is given by its location needs no warehouse."""
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
    """A table or namespace by its name, or by the folder or URL where it lies: a command is given the name, and its
    warehouse. What has no name there stays the place that it is; so does a log, which is looked at by itself."""

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

    Nothing where there is no warehouse, or it cannot be read: a shell that waits for completions shows no error.
    """
    place = context.params.get("warehouse") or os.environ.get("LAKELOG_WAREHOUSE")
    if place is None or is_location(incomplete):
        return []
    options = {name: context.params.get(name) for name in ("endpoint", "region")}
    given = {name: str(value) for name, value in options.items() if value}
    if context.params.get("path_style"):
        given["path_style"] = "true"
    try:
        catalog = Catalog(place, options=given)
        catalog.places.check_there()
        inside = identifier(incomplete.rpartition(".")[0])
        found = [f"{quoted_where_needed(each)}." for each in catalog.list_namespaces(inside)]
        found += [quoted_where_needed(each) for each in catalog.list_tables(inside)]
    except LakelogError:
        return []
    # Bash puts into the line what it is given, and would run what stands in backticks or $(): any client that may write
    # to a namespace can have that in a name. zsh and fish quote by themselves.
    is_bash = os.environ.get(VARIABLE, "").startswith("bash")
    return [
        name for name in found if name.startswith(incomplete) and (not is_bash or shlex.quote(name) == name)
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
        envvar="LAKELOG_WAREHOUSE",
        metavar="URL",
        help="Folder or s3:// URL of the warehouse. LAKELOG_WAREHOUSE is the default.",
    ),
    click.option("--endpoint", metavar="URL", help="Address of an S3 that is not AWS's own."),
    click.option("--region", metavar="NAME", help="Region of the bucket."),
    click.option(
        "--path-style", is_flag=True, help="Put the bucket in the URL's path, as most S3 servers need."
    ),
    click.option("--json", "as_json", is_flag=True, help="Answer in JSON, for programs."),
    click.option("--verbose", is_flag=True, help="Also print the requests that were made, on stderr."),
)


def takes_place(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options; it receives them as a Place, its first argument."""

    @wraps(command)
    def with_place(
        warehouse: str | None,
        endpoint: str | None,
        region: str | None,
        path_style: bool,
        as_json: bool,
        verbose: bool,
        **rest: Any,
    ) -> None:
        place = Place(
            warehouse=warehouse,
            endpoint=endpoint,
            region=region,
            path_style=path_style,
            as_json=as_json,
            costs=Costs() if verbose else None,
        )
        with nullcontext() if place.costs is None else place.costs.reported():
            place = _resolved(place, rest)
            command(place, **rest)

    for option in reversed(_SHARED):
        with_place = option(with_place)
    return with_place
