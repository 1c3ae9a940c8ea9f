"""What the adapter can ask about the tags and branches of a table: thin over `lakelog.catalog.Table`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakelog.spark.asking import Params, token_of
from lakelog.spark.handles import Handles

if TYPE_CHECKING:
    from lakelog.catalog import CatalogNames
    from lakelog.catalog.names import Identifier
    from lakelog.catalog.table import Table

_NAME = re.compile(r"(?P<kind>branch|tag)_(?P<name>.+)", re.DOTALL)


class OnRefs:
    _handles: Handles

    def on_create_ref(self, params: Params) -> Params:
        """Make a tag or branch (`kind`) `as_of` a version, a time or another one, by default the loaded version.

        `where` says what is to be there: "new" for none of that name, or `new-or-there`, `any` (which is replaced), or
        `there` (which is replaced too).
        """
        table, token = self._handles.writable(params), token_of(params)
        name, where, asked = params["name"], params["where"], params["as_of"]
        if "ref" in asked:
            table = table.at(ref=asked["ref"])
        if "timestamp_us" in asked:
            table = table.at(timestamp_us=asked["timestamp_us"])
        version = asked.get("version")
        is_tag = params["kind"] == "tag"
        if where == "there":
            (table.replace_tag if is_tag else table.replace_branch)(name, version, token=token)
        else:
            (table.create_tag if is_tag else table.create_branch)(
                name, version, replace=where == "any", if_not_exists=where == "new-or-there", token=token
            )
        return {}

    def on_drop_ref(self, params: Params) -> Params:
        table, token = self._handles.writable(params), token_of(params)
        drop = table.drop_tag if params["kind"] == "tag" else table.drop_branch
        drop(params["name"], if_exists=params["if_exists"], token=token)
        return {}


def load_named(catalog: CatalogNames, path: Identifier) -> Table:
    """Return the table of that name or, where there is none, the one on a tag or branch that the last part names.

    Names are as in SQL, see `RefTables.scala`. NoSuchTable, NoSuchNamespace.
    """
    from lakelog.catalog.errors import NoSuchNamespace, NoSuchRef, NoSuchTable

    try:
        return catalog.load_table(path)
    except (NoSuchTable, NoSuchNamespace):
        match = _NAME.fullmatch(path[-1])
        if match is None or len(path) == 1:
            raise
        try:
            return on_named(catalog.load_table(path[:-1]), match.groupdict())
        except (NoSuchTable, NoSuchNamespace, NoSuchRef):
            pass
        raise


def on_named(table: Table, named: Mapping[str, str]) -> Table:
    """Return a table on the tag or branch `name`, which has to be of the `kind`, if one is said. NoSuchRef."""
    from lakelog.catalog.errors import NoSuchRef
    from lakelog.catalog.state import BRANCH

    found = table.at(ref=named["name"])
    kind = BRANCH if found.ref_id is None else found.refs[found.ref].kind
    if named.get("kind", kind) != kind:
        raise NoSuchRef(f"{named['name']} of {table.name} is a {kind}: say {kind}_{named['name']}")
    return found
