"""Bounds of manifests: facts about all files of a manifest together, by which a plan skips whole manifests.

Bounds of many manifests are an Arrow table with a row for each manifest and flat typed columns, as files have
them. They are `name`, `specs` (the ids of the specs of its files, as `0,2`), by column id `lo<id>`, `hi<id>`
and `may<id>`, and by partition field `plo<id>`, `phi<id>` and `pmay<id>`. `may` is a sum: 1 if a file may
have a NULL there, 2 for a NaN, 4 for another value; NULL is unknown. `lo` and `hi` bound these other values
in all files; NULL is no bound.

Bounds of columns come from statistics, so a statistic that is unknown for a file is unknown for its manifest.
Bounds of partition fields are those of the files whose spec has the field; `specs` says whether these are
all.

Rule: any value that may be in a file, by the file's own statistics alone, may be in the manifest.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.arrow_lists import check_list, decode_table, encode_table
from lakelog.catalog.core.files.data_file import physical_rows, split_name
from lakelog.catalog.core.files.file_tables import joined
from lakelog.log.errors import FormatError

MAY_NULL, MAY_NAN, MAY_VALUE = 1, 2, 4

BOUNDED_FROM = 1000
"""Manifests of fewer entries have no bounds.

They cost little, and snapshots of small tables stay as they were.
"""

COLUMNS_BOUNDED = 64
"""A manifest has bounds of at most so many columns with statistics, those of the lowest ids."""

EXACT_BELOW_BYTES = 29
"""Writers cut text bounds to 32 characters or bytes, or just below; shorter bounds were not cut."""

_SPECS = r"^[0-9]{1,10}(,[0-9]{1,10})*$"
_NUMBERED = re.compile(r"(?:p?lo|p?hi|p?may)[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class BoundsAt:
    """The bounds of a manifest: a row of a table of bounds."""

    table: pa.Table
    row: int

    def has(self, name: str) -> bool:
        """Return whether a bound is known."""
        return name in self.table.column_names and bool(self.table[name][self.row].is_valid)


def bounds_of(name: str, files: pa.Table) -> BoundsAt | None:
    """Return the bounds of a manifest of these files; None if it is read in any case."""
    return BoundsAt(_bounds(name, files), 0) if is_bounded(files) else None


def is_bounded(files: pa.Table) -> bool:
    """Return whether a manifest of these files is worth bounds, and an order that makes them tight."""
    return bool(files.num_rows >= BOUNDED_FROM)


def bounds_table(bounds: Sequence[BoundsAt]) -> pa.Table:
    """Return the bounds of several manifests as a single table, in this order."""
    tables: list[pa.Table] = []
    rows: list[int] = []
    for place, manifest_bounds in enumerate(bounds):
        rows.append(manifest_bounds.row)
        if place + 1 == len(bounds) or bounds[place + 1].table is not manifest_bounds.table:
            whole = rows == list(range(manifest_bounds.table.num_rows))
            tables.append(
                manifest_bounds.table if whole else manifest_bounds.table.take(pa.array(rows, pa.int64()))
            )
            rows = []
    return joined(tables) if len(tables) != 1 else tables[0]


def encode_bounds(bounds: Sequence[BoundsAt]) -> str | None:
    """Return bounds as the text that a snapshot has, None for none."""
    return base64.b64encode(encode_table(bounds_table(bounds))).decode("ascii") if bounds else None


def decode_bounds(text: str | None) -> dict[str, BoundsAt]:
    """Return the bounds that `encode_bounds` wrote, by the names of manifests.

    Raises FormatError for another text.
    """
    if text is None:
        return {}
    try:
        table = decode_table(base64.b64decode(text, validate=True)).combine_chunks()
    except binascii.Error as error:
        raise FormatError(
            f"bounds of manifests are no base64 ({error}): find out which client wrote them"
        ) from None
    _check(table)
    names: list[str] = table["name"].to_pylist()
    return {name: BoundsAt(table, row) for row, name in enumerate(names)}


def holds(bounds: pa.Table, files: pa.Table) -> bool:
    """Return whether a row of bounds leaves out no value that may be in `files` by their own statistics."""
    least = _bounds("", files)
    stated_specs, file_specs = (set(table["specs"][0].as_py().split(",")) for table in (bounds, least))
    if files.num_rows and not file_specs <= stated_specs:
        return False
    for name in bounds.column_names:
        kind, is_may, id = name.partition("may")
        if (
            is_may
            and _has(bounds, name)
            and not _within(bounds, least, f"{kind}lo{id}", f"{kind}hi{id}", name)
        ):
            return False
    return True


def _check(table: pa.Table) -> None:
    types = {"name": pa.string(), "specs": pa.string()}
    types |= {name: pa.int8() for name in table.column_names if "may" in name}
    absent_names = {"name", "specs"} - set(table.column_names)
    strange = [name for name in table.column_names if name not in types and not _NUMBERED.fullmatch(name)]
    if absent_names or strange:
        raise FormatError(
            f"bounds of manifests lack {', '.join(sorted(absent_names)) or 'nothing'}, and have the unknown columns "
            f"{', '.join(strange)[:80] or '(none)'}: another program wrote them"
        )
    check_list(table, types)
    if table["name"].null_count or table["specs"].null_count:
        raise FormatError("bounds of manifests have no name or specs: another program wrote them")
    if len(pc.unique(table["name"])) < table.num_rows:
        raise FormatError("bounds of manifests have a manifest twice: another program wrote them")
    if not pc.all(pc.match_substring_regex(table["specs"], _SPECS), min_count=0).as_py():
        raise FormatError("bounds of manifests have specs that are no numbers: another program wrote them")


def _bounds(name: str, files: pa.Table) -> pa.Table:
    specs = pc.unique(files["spec"]).sort().to_pylist()
    columns: dict[str, pa.Array] = {
        "name": pa.array([name], pa.string()),
        "specs": pa.array([",".join(map(str, specs))], pa.string()),
    }
    ids = {kind: set[int]() for kind in ("p", "lo", "hi", "nulls", "nans")}
    for column in files.column_names:
        kind, id = split_name(column)
        if kind:
            ids[kind].add(id)
    for id in sorted(ids["p"]):
        _add(columns, "p", id, _of_partitions(_array(files, f"p{id}")))
    rows = physical_rows(files)
    for id in sorted(ids["nulls"] | ids["lo"] | ids["hi"])[:COLUMNS_BOUNDED]:
        _add(columns, "", id, _of_column(files, id, rows))
    return pa.table(columns)


def _add(
    columns: dict[str, pa.Array], kind: str, id: int, of: tuple[pa.Scalar | None, pa.Scalar | None, int]
) -> None:
    for name, value in ((f"{kind}lo{id}", of[0]), (f"{kind}hi{id}", of[1])):
        if value is not None:
            columns[name] = pa.repeat(value, 1)
    columns[f"{kind}may{id}"] = pa.array([of[2]], pa.int8())


def _of_partitions(values: pa.Array) -> tuple[pa.Scalar | None, pa.Scalar | None, int]:
    may = MAY_NULL if values.null_count else 0
    values = values.drop_null()
    if pa.types.is_floating(values.type):
        nans = pc.is_nan(values)
        may |= MAY_NAN if pc.any(nans, min_count=0).as_py() else 0
        values = values.filter(pc.invert(nans))
    may |= MAY_VALUE if len(values) else 0
    return *_ends(values, values), may


def _of_column(files: pa.Table, id: int, rows: pa.Array) -> tuple[pa.Scalar | None, pa.Scalar | None, int]:
    nulls, nans = (_array(files, f"{kind}{id}") for kind in ("nulls", "nans"))
    lo, hi = (_array(files, f"{kind}{id}") for kind in ("lo", "hi"))
    if pa.types.is_floating(lo.type):
        lo, hi = (pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column) for column in (lo, hi))
    if pa.types.is_string(lo.type) or pa.types.is_binary(lo.type):
        # If equal bounds may be cut, the upper bound may be below a value: see `file_facts`.
        cut = pc.and_(pc.equal(lo, hi), pc.greater_equal(pc.binary_length(lo), EXACT_BELOW_BYTES))
        hi = pc.if_else(pc.fill_null(cut, False), pa.scalar(None, hi.type), hi)
    nulls, nans = (pc.cast(column, pa.int64()) for column in (nulls, nans))
    has_values = pc.fill_null(pc.less(nulls, rows), True)
    has_bounds = pc.and_(pc.is_valid(lo), pc.is_valid(hi))
    nan = pc.and_(pc.if_else(pc.is_valid(nans), pc.greater(nans, 0), pc.invert(has_bounds)), has_values)
    value = has_values
    if pa.types.is_floating(lo.type):
        value = pc.fill_null(pc.less(pc.add(nulls, pc.fill_null(nans, 0)), rows), True)
    may = MAY_NULL if pc.any(pc.fill_null(pc.greater(nulls, 0), True), min_count=0).as_py() else 0
    may |= MAY_NAN if pc.any(nan, min_count=0).as_py() else 0
    may |= MAY_VALUE if pc.any(value, min_count=0).as_py() else 0
    return *_ends(lo.filter(value), hi.filter(value)), may


def _ends(lows: pa.Array, highs: pa.Array) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """Return the least of `lows` and the greatest of `highs`, each None if any of them is not known."""
    if not len(lows) or pa.types.is_null(lows.type):
        return None, None
    try:
        lo = None if lows.null_count else pc.min_max(lows)["min"]
        return lo, None if highs.null_count else pc.min_max(highs)["max"]
    except pa.ArrowNotImplementedError:
        return None, None  # of a type that another client has made up


def _array(files: pa.Table, name: str) -> pa.Array:
    if name not in files.column_names:
        return pa.nulls(files.num_rows)
    column = files[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _has(bounds: pa.Table, name: str) -> bool:
    return name in bounds.column_names and bounds[name].null_count == 0


def _within(claimed_table: pa.Table, least: pa.Table, lo: str, hi: str, may: str) -> bool:
    if may not in least.column_names or least[may][0].as_py() & ~claimed_table[may][0].as_py():
        return False
    for name, is_wider in ((lo, pc.less_equal), (hi, pc.greater_equal)):
        if not _has(claimed_table, name):
            continue
        if not _has(least, name):
            # Without another value, there is nothing to bound.
            if least[may][0].as_py() & MAY_VALUE:
                return False
            continue
        try:
            if not is_wider(claimed_table[name][0], least[name][0].cast(claimed_table[name].type)).as_py():
                return False
        except pa.ArrowException:
            return False
    return True
