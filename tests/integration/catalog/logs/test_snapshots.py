"""The metadata table `snapshots` sums up each version correctly."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.catalog.conftest import rows

from lakelog.catalog import Catalog, col

Client = Callable[[], Catalog]


def test_totals_are_those_of_each_version(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", rows().schema).append(rows(1, 2, 3)).append(rows(4))
    table = table.delete(col("id") == 2)
    table.create_branch("b")
    client().load_table("t", ref="b").append(rows(9))
    client().load_table("t").delete(col("id") == 4).rollback_to_version(3)
    found_table = client().load_table("t")
    snapshots = {
        row["version"]: dict(row["summary"])
        for row in found_table.inspect("snapshots").read_all().to_pylist()
    }
    assert len(snapshots) == found_table.version == 8
    for version, summary in snapshots.items():
        at = found_table.at(version=version)
        assert (summary["total-records"], summary["total-data-files"]) == (
            str(at.row_count),
            str(at.file_count),
        )
        assert at.row_count == at.to_arrow().num_rows
    assert snapshots[4]["added-position-deletes"] == "1"
    assert (snapshots[8]["added-records"], snapshots[8]["deleted-records"]) == ("4", "2")
