"""That a log names each feature from the version on that first uses it, and what a client without it does."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.imports.adopting import end, imported, source_with_two_files

from lakelog.catalog import Catalog, StreamBatch, Table, col, engine
from lakelog.catalog.core.files import manifests
from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.core.schema import AtomicType, Default, Field, Generated, Identity
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.state import features, namespace_state, paged_map
from lakelog.catalog.core.state.namespace_projection import NamespaceProjection
from lakelog.catalog.core.state.table_projection import TableProjection
from lakelog.catalog.keeping.maintenance.fsck import Severity, check_warehouse
from lakelog.log import Commit, LogOptions, UnsupportedFormat
from lakelog.log.format import SnapshotRoot, decode_root, encode
from lakelog.log.view import root_of as root_of_view

SCHEMA = pa.schema([pa.field("id", pa.int32()), pa.field("name", pa.string())])
ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}, schema=SCHEMA)

Scenario = Callable[[Path], Table]
"""Makes the table `t` in the warehouse `w` of a folder, whose last version is the first to use a feature."""


def plain(folder: Path, name: str = "t") -> Table:
    return Catalog(folder / "w").create_table(name, SCHEMA).append(ROWS)


def altered_scenario(*changes: dict[str, Any]) -> Scenario:
    return lambda folder: plain(folder).alter(list(changes))


def added_scenario(type: str, **more: Any) -> Scenario:
    return altered_scenario({"change": "add-column", "name": ["x"], "type": type, **more})


def created_scenario(field: Field, *more: Field) -> Scenario:
    return lambda folder: Catalog(folder / "w").create_table("t", assign_ids((field, *more)))


def vectors(folder: Path) -> Table:
    return plain(folder).delete(col("id") == 2)


def foreign(folder: Path) -> Table:
    place = folder / "source"
    place.mkdir()
    pq.write_table(ROWS, place / "one.parquet")
    return plain(folder).add_files(place)


def of_clone(folder: Path) -> Table:
    plain(folder, "of")
    return Catalog(folder / "w").clone("of", "t")


def widened_parts(folder: Path) -> Table:
    """A table whose lists and maps have elements, keys and values of wider types than its files."""
    rows = pa.table({"l": [[1, 2]], "m": [[(1, 1.5)]]}, schema=pa.schema([
        ("l", pa.list_(pa.int32())), ("m", pa.map_(pa.int8(), pa.float32()))]))  # fmt: skip
    table = Catalog(folder / "w").create_table("t", rows.schema).append(rows)
    parts = {"l.element": "decimal(12,2)", "m.key": "long", "m.value": "double"}
    for part, type in parts.items():
        table = table.alter([{"change": "update-column-type", "name": part.split("."), "type": type}])
    former = [field.widened for _, field in table.schema.walk()]
    assert former == [(), ("integer",), (), ("byte",), ("float",)]
    assert "as integer" in str(table.iceberg_obstacles()), "Iceberg does not read integers as decimals"
    assert Catalog(folder / "w").load_table("t").to_arrow()["m"].to_pylist() == [[(1, 1.5)]]
    return table


def clone_of_clone(folder: Path) -> Table:
    """The clone of a table with vectors and columns that were widened: it has these features from the beginning."""
    table = plain(folder, "of").alter([{"change": "update-column-type", "name": ["id"], "type": "long"}])
    table.delete(col("id") == 2)
    return Catalog(folder / "w").clone("of", "t")


def promising_table(folder: Path) -> Table:
    table = plain(folder)
    Catalog(folder / "w").clone("t", "copy")
    return table.refresh()


def erased_table(folder: Path) -> Table:
    plain(folder)
    catalog = Catalog(folder / "w")
    catalog.forget("t", col("id") == 2, dry_run=False)
    return catalog.load_table("t")


def of_import(folder: Path) -> Table:
    return imported(folder, source_with_two_files(folder / "source")).load_table("t")


def adopting_table(folder: Path) -> Table:
    catalog = imported(folder, source_with_two_files(folder / "source"))
    end(folder / "source")
    catalog.adopt_files("t", dry_run=False)
    return catalog.load_table("t")


def restored(folder: Path) -> Table:
    """A table that a rollback gives its columns back."""
    table = added_scenario("string collate UTF8_LCASE")(folder)
    return table.rollback_to_version(table.version - 1).rollback_to_version(table.version)


OVER_0 = {"op": ">", "args": [{"col": ["id"]}, {"lit": 0, "type": "integer"}]}
CHECK = {"kind": "check", "name": "c", "columns": [["id"]], "sql": "id > 0", "predicate": OVER_0}
IDENTITY = Identity(start=1, step=1, always=True)
LONG = AtomicType("long")
GENERATED = Field(name="x", type=LONG, generated=Generated(sql="y + 1", columns=("y",)))

SCENARIOS: dict[str, Scenario] = {
    features.DELETION_VECTORS: vectors,
    features.ABSOLUTE_PATHS: of_clone,
    features.FOREIGN_FILES: foreign,
    features.COLUMN_DEFAULTS: added_scenario(
        "long", default={"current": "1", "exists": {"type": "long", "value": 1}}
    ),
    features.TYPE_WIDENING: altered_scenario(
        {"change": "update-column-type", "name": ["id"], "type": "long"}
    ),
    features.COLLATIONS: added_scenario("string collate UTF8_LCASE"),
    features.VARIANTS: added_scenario("variant"),
    features.INTERVALS: added_scenario("interval day to second"),
    features.TIMES: added_scenario("time(6)"),
    features.WRITE_DEFAULTS: created_scenario(Field(name="x", type=LONG, default=Default(current="1"))),
    features.GENERATED_COLUMNS: created_scenario(GENERATED, Field(name="y", type=LONG)),
    features.IDENTITY_COLUMNS: created_scenario(
        Field(name="x", type=LONG, nullable=False, identity=IDENTITY)
    ),
    features.TEXT_LENGTHS: added_scenario("varchar(3)"),
    features.CHECKS: altered_scenario({"change": "add-constraint", "constraint": CHECK}),
    features.BRANCHES: lambda folder: plain(folder).create_tag("one"),
    features.STREAMS: lambda folder: plain(folder).append(ROWS, batch=StreamBatch(stream="s", number=0)),
    features.IMPORTS: of_import,
    features.ADOPTION: adopting_table,
    features.CLONES: promising_table,
    features.ERASURE: erased_table,
}
OTHERWISE: dict[str, tuple[Scenario, set[str]]] = {
    "plain": (plain, set()),
    "imported": (of_import, {"absolute-paths", "foreign-files", "branches", "imports"}),
    "cloned": (of_clone, {"absolute-paths", "clones"}),
    "cloned with vectors": (
        clone_of_clone,
        {"absolute-paths", "clones", "deletion-vectors", "type-widening"},
    ),
    "widened parts": (widened_parts, {"type-widening"}),
    "widened texts": (added_scenario("varchar(3)"), {"text-lengths"}),
    "rolled back": (restored, {"collations"}),
}


def named_texts(table: Table) -> set[str]:
    return {*table.features, *table.writer_features}


def check(folder: Path) -> None:
    logs = LogCache(WarehouseStores(str(folder / "w"), {}), {}, LogOptions())
    report = check_warehouse(logs, (), deep=False, all_versions=False, repair=False)
    assert not report.of(Severity.DAMAGE), report.found


def test_each_feature_has_a_scenario() -> None:
    of_logs = {feature.name for feature in features.FEATURES if feature.needs != "readers of the state"}
    assert SCENARIOS.keys() == of_logs - {features.CUTS}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_log_names_a_feature_from_the_version_on_that_uses_it(tmp_path: Path, name: str) -> None:
    table = SCENARIOS[name](tmp_path)
    log = table.table_head.tracked.log
    view = log.view_at(table.version)
    readers = next(feature for feature in features.FEATURES if feature.name == name).needs == "readers"
    uses = [
        commit.version
        for commit in log.commits()
        if name in (commit.features if readers else commit.writer_features)
    ]
    assert len(uses) == (name != features.ERASURE), "an erasure expires the commit that names it"
    assert name in (view.features if readers else view.writer_features)
    assert name not in (view.writer_features if readers else view.features)
    if uses and uses[0] > 1:
        view_before = log.view_at(uses[0] - 1)
        assert name not in {*view_before.features, *view_before.writer_features}
    table = (
        Catalog(tmp_path / "w").load_table("t").alter([{"change": "set-property", "key": "a", "value": "b"}])
    )
    assert name in named_texts(table)
    check(tmp_path)


@pytest.mark.parametrize("what", OTHERWISE)
def test_whatever_made_a_table_it_names_exactly_what_it_uses(tmp_path: Path, what: str) -> None:
    scenario, expected = OTHERWISE[what]
    assert named_texts(scenario(tmp_path)) == expected
    check(tmp_path)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_client_that_lacks_a_feature(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads older versions, and newer ones if only writers need the feature. It writes nothing."""
    table = SCENARIOS[name](tmp_path).alter([{"change": "set-property", "key": "a", "value": "a"}])
    version = table.version
    for projection in (TableProjection, NamespaceProjection):
        monkeypatch.setattr(projection, "known_features", features.KNOWN - {name})
    catalog = Catalog(tmp_path / "w")
    if name in table.features:
        with pytest.raises(
            UnsupportedFormat, match=f"the feature `{name}`, which .*: upgrade lakelog to read it"
        ):
            catalog.load_table("t")
        uses = next(v for v in range(1, version + 1) if name in table.table_head.tracked.view_at(v).features)
        for older in range(1, version + 1):
            if older < uses:
                assert (
                    catalog.load_table("t", version=older)
                    .to_arrow()
                    .equals(table.at(version=older).to_arrow())
                )
            else:
                with pytest.raises(UnsupportedFormat, match=name):
                    catalog.load_table("t", version=older)
        return
    partial = catalog.load_table("t")
    assert partial.to_arrow().equals(table.to_arrow())
    works: list[Callable[[], object]] = [
        lambda: partial.alter([{"change": "set-property", "key": "a", "value": "b"}]),
        lambda: engine.begin_write(partial),
        lambda: partial.create_tag("t1"),
        lambda: catalog.expire("t", retain_last=1, dry_run=False),
        lambda: catalog.vacuum("t", older_than=dt.timedelta(0), dry_run=False),
        lambda: catalog.drop_table("t"),
        lambda: catalog.rename_table("t", "u"),
    ]
    for work in works:
        with pytest.raises(
            UnsupportedFormat, match=f"the feature `{name}`, which .*: upgrade lakelog to write to it"
        ):
            work()
    assert catalog.load_table("t").version == version


def test_the_minimal_client_reads_and_appends_to_a_plain_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(tmp_path)
    for projection in (TableProjection, NamespaceProjection):
        monkeypatch.setattr(projection, "known_features", frozenset())
    table = Catalog(tmp_path / "w").load_table("t").append(ROWS)
    assert table.to_arrow().num_rows == 6 and named_texts(table) == set()


def test_a_saved_cut_is_named_in_its_namespace(tmp_path: Path) -> None:
    plain(tmp_path)
    catalog = Catalog(tmp_path / "w")
    catalog.save_cut("one")
    root = LogCache(WarehouseStores(str(tmp_path / "w"), {}), {}, LogOptions()).namespace("").current()
    assert (root.features, root.writer_features) == ((), ("cuts",))


def test_a_client_that_does_not_know_what_a_namespace_keeps_expires_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(tmp_path, "dropped")
    table = plain(tmp_path).append(ROWS)
    catalog = Catalog(tmp_path / "w")
    catalog.save_cut("one")
    catalog.drop_table("dropped")
    version = table.append(ROWS).version
    monkeypatch.setattr(NamespaceProjection, "known_features", features.KNOWN - {features.CUTS})
    older = Catalog(tmp_path / "w")
    works: list[Callable[[], object]] = [
        lambda: older.expire("t", retain_last=1, dry_run=False),
        lambda: older.drop_table("t", purge=True),
    ]
    for work in works:
        with pytest.raises(
            UnsupportedFormat, match="the feature `cuts`, which .*: upgrade lakelog to write to it"
        ):
            work()
    duration = dt.timedelta(0)
    vacuumed_report = older.vacuum(older_than=duration, dropped_older_than=duration, dry_run=False)
    assert "`cuts`" in str(next(each.error for each in vacuumed_report if each.name == "`dropped`"))
    monkeypatch.undo()
    cut = Catalog(tmp_path / "w", as_of="one")
    assert (cut.load_table("t").row_count, cut.load_table("dropped").row_count) == (6, 3)
    assert Catalog(tmp_path / "w").load_table("t").version == version


def test_no_log_is_begun_that_its_namespace_cannot_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(tmp_path)
    Catalog(tmp_path / "w").save_cut("one")
    monkeypatch.setattr(NamespaceProjection, "known_features", features.KNOWN - {features.CUTS})
    with pytest.raises(UnsupportedFormat, match="the feature `cuts`, which .* to write to it"):
        Catalog(tmp_path / "w").create_table("u", SCHEMA, location=str(tmp_path / "place"))
    assert not (tmp_path / "place").exists()


def test_no_table_is_made_from_one_that_has_what_is_not_known_here(tmp_path: Path) -> None:
    """The copy would lack it, and the next writer would not know."""
    table = plain(tmp_path)
    put(table, {"event": "quota-set", "skippable": True, "rows": 5}, writer_features=("quotas",))
    catalog, other_catalog = Catalog(tmp_path / "w"), Catalog(tmp_path / "other")
    other_catalog.create_namespace("n")
    catalog.backup(tmp_path / "backup")
    works: list[Callable[[], object]] = [
        lambda: catalog.clone("t", "u"),
        lambda: catalog.copy_table(tmp_path / "other", "t"),
        lambda: other_catalog.restore_table(tmp_path / "backup", "t"),
    ]
    for work in works:
        with pytest.raises(UnsupportedFormat, match="the feature `quotas`, which .* to write to it"):
            work()
    assert catalog.list_tables() == [("t",)] and other_catalog.list_tables() == []
    warehouse = Catalog(tmp_path / "restored")
    warehouse.restore_warehouse(tmp_path / "backup")
    assert warehouse.load_table("t").writer_features == ("quotas",)


def test_a_commit_names_what_only_some_of_its_events_use(tmp_path: Path) -> None:
    plain(tmp_path)
    with Catalog(tmp_path / "w").transaction() as transaction:
        table = transaction.load_table("t").create_tag("one").drop_tag("one")
        for type in ("variant", "varchar(3)"):
            table.alter([{"change": "add-column", "name": ["x"], "type": type}])
            table.alter([{"change": "delete-column", "name": ["x"]}])
        table.alter([{"change": "add-constraint", "constraint": CHECK}])
        table.alter([{"change": "drop-constraint", "name": "c"}]).append(ROWS)
    table = Catalog(tmp_path / "w").load_table("t")
    assert table.features == ("variants",) and table.writer_features == ("branches", "checks", "text-lengths")
    check(tmp_path)


def root_of(table_or_none: Table | None, folder: Path) -> SnapshotRoot:
    """Return the newest snapshot of a table, or of the root namespace."""
    logs = LogCache(WarehouseStores(str(folder / "w"), {}), {}, LogOptions())
    tracked_namespace: Any = (
        logs.namespace("") if table_or_none is None else logs.table(logs.location(table_or_none.location))
    )
    tracked_namespace.log.snapshot(tracked_namespace.current())
    return decode_root(tracked_namespace.store.get(tracked_namespace.log.keys.latest), "", features.KNOWN)


def test_a_state_names_the_features_of_its_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = plain(tmp_path)
    assert root_of(table, tmp_path).state_features == root_of(None, tmp_path).state_features == ()
    monkeypatch.setattr(manifests, "PACKED_FROM", 1)
    for module in (namespace_state, paged_map):
        monkeypatch.setattr(module, "PAGED_FROM", 2)
    for number in range(4):
        plain(tmp_path, f"more_{number}")
    root, names = root_of(table.append(ROWS).append(ROWS), tmp_path), root_of(None, tmp_path)
    assert root.state_features == (("packs",) if "packs" in root.state else ())
    assert "packs" in root.state and names.state_features == ("pages",) and "paged" in names.state
    check(tmp_path)


def put(table: Table, *events: dict[str, Any], writer_features: tuple[str, ...] = ()) -> None:
    """Put what a newer client might, as the table's next version."""
    tracked_log = table.table_head.tracked
    head = tracked_log.current()
    last = tracked_log.log.entry_at(head.version)
    assert isinstance(last, Commit)
    newer = msgspec.structs.replace(
        last, version=head.version + 1, prev=head.hash, time_us=head.time_us + 1, commit_id="later", attempt_id="a",
        write=None, events=events, features=(), writer_features=writer_features, sidecars=(), hash="",
    )  # fmt: skip
    tracked_log.store.put(tracked_log.log.keys.commit(newer.version), encode(newer))


def test_readers_skip_what_only_writers_of_a_newer_client_need(tmp_path: Path) -> None:
    table = plain(tmp_path)
    put(table, {"event": "quota-set", "skippable": True, "rows": 5}, writer_features=("quotas",))
    newer = Catalog(tmp_path / "w").load_table("t")
    assert newer.version == table.version + 1 and newer.to_arrow().equals(table.to_arrow())
    assert newer.writer_features == ("quotas",) and len(list(newer.history())) == newer.version
    with pytest.raises(UnsupportedFormat, match="the feature `quotas`, which .* to write to it"):
        newer.append(ROWS)
    tracked_log = table.table_head.tracked
    view = tracked_log.current()
    dump = tracked_log.log.projection.dump(view.state, view.version)
    for name, blob in dump.blobs.items():
        tracked_log.store.put(tracked_log.log.keys.manifest(name), blob)
    dump = replace(dump, root=dump.root | {"writers": {"quotas": {"rows": 5}}})
    tracked_log.store.put(tracked_log.log.keys.latest, encode(root_of_view(view, dump)))
    assert Catalog(tmp_path / "w").load_table("t").to_arrow().equals(table.to_arrow())


@pytest.mark.parametrize(
    "event",
    [
        {"event": "quota-set", "rows": 5},
        {"event": "quota-set", "skippable": False},
        {"event": "table-altered", "set": {}, "skippable": True},
        {"event": "sort-order-changed", "sort_order": {"fields": [{
            "source_id": 1, "transform": {"name": "spiral"}, "direction": "asc", "nulls": "first"}]}},
        {"event": "constraint-added", "constraint": {"kind": "exclusion", "name": "x", "columns": [1]}},
        {"event": "schema-changed", "schema": {"last_id": 3, "fields": [
            {"id": 3, "name": "x", "physical": "x_3", "type": {"kind": "atomic", "name": "geometry"}}]}},
        {"event": "schema-changed", "schema": {"last_id": 3, "fields": [
            {"id": 3, "name": "x", "physical": "x_3", "type": {"kind": "tensor", "of": "float"}}]}},
    ],
)  # fmt: skip
def test_a_word_that_is_not_known_here_asks_for_an_upgrade(tmp_path: Path, event: dict[str, Any]) -> None:
    table = plain(tmp_path)
    put(table, event)
    with pytest.raises(UnsupportedFormat, match=r"\.json.*does not know.*: upgrade lakelog to read it"):
        Catalog(tmp_path / "w").load_table("t")
    assert Catalog(tmp_path / "w").load_table("t", version=table.version).to_arrow().equals(table.to_arrow())
