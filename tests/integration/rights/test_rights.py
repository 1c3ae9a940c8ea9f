"""What clients with different rights can do, against a real S3 server with users: the policies of `docs/security.md`.

Every user has the namespace `mine`, or less. What one of them is refused must leave all of it as usable as it was.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.rights.policies import Grant, below, reader, set_policy, writer

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.ddl import saved_cuts
from lakelog.catalog.keeping.maintenance.fsck import Severity
from lakelog.log import LogOptions, wait_for_background
from lakelog.log.errors import PermissionDenied
from lakelog.testing.moto_server import S3Server
from lakelog.testing.versitygw import INSTALL, find_versitygw, versitygw

pytestmark = [
    pytest.mark.s3,
    pytest.mark.skipif(
        find_versitygw() is None, reason=f"no versitygw on this machine; install it: {INSTALL}"
    ),
]

SCHEMA = pa.schema({"id": pa.int64()})
ROWS = pa.table({"id": [7]}, schema=SCHEMA)
USERS = {
    name: f"secret-{name}" for name in ("maintainer", "writer", "both", "table", "reader", "blind", "bare")
}
OPTIONS = LogOptions(patience_s=0.1, patience_each_s=0.01)
NO_AGE = dt.timedelta(0)
ALL = "maintainer"


@dataclass(slots=True)
class Lake:
    server: S3Server
    places: dict[str, str] = field(default_factory=dict)
    grants: dict[str, Grant] = field(default_factory=dict)
    catalogs: dict[str, Catalog] = field(default_factory=dict)

    def run(self, user: str, work: Callable[[Catalog], Any]) -> Any:
        """Do something as one user; its snapshots are written, or refused, before this returns."""
        server = replace(self.server, access_key=user, secret_key=USERS[user])
        with server.credentials():
            try:
                if user not in self.catalogs:
                    self.catalogs[user] = Catalog("s3://lake/w", options=server.options, log_options=OPTIONS)
                return work(self.catalogs[user])
            finally:
                wait_for_background()

    def of_the_past(self, user: str, cut: str, namespace: str, work: Callable[[Catalog], Any]) -> Any:
        """Read a saved cut of a namespace as one user."""
        server = replace(self.server, access_key=user, secret_key=USERS[user])
        with server.credentials():
            past = Catalog(
                "s3://lake/w",
                options=server.options,
                log_options=OPTIONS,
                as_of=cut,
                as_of_namespace=namespace,
            )
            return work(past)

    def is_refused(self, user: str, work: Callable[[Catalog], Any]) -> str:
        with pytest.raises(PermissionDenied) as caught:
            self.run(user, work)
        return str(caught.value)

    def check_usable(self, user: str = "writer", *names: str) -> None:
        """Nothing is locked: that user can still write each table of the namespace."""
        for name in names or ("mine.t", "mine.u"):
            self.run(user, appending(name))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with versitygw(tmp_path_factory.mktemp("s3") / "data", users=USERS) as server:
        set_policy(server, "lake", {ALL: Grant(reads=["*"], writes=["*"])})
        found_lake = Lake(server)

        def fill(catalog: Catalog) -> None:
            for namespace in ("mine", "other"):
                catalog.create_namespace(namespace)
                for name in ("t", "u"):
                    table = catalog.create_table(f"{namespace}.{name}", SCHEMA).append(ROWS)
                    found_lake.places[f"{namespace}.{name}"] = table.location.removeprefix("s3://lake/")
                found_lake.places[namespace] = found_lake.places[f"{namespace}.t"].rpartition("/")[0]

        found_lake.run(ALL, fill)
        mine, other_place, table = (found_lake.places[name] for name in ("mine", "other", "mine.t"))
        both = writer("w", mine)
        found_lake.grants = {
            ALL: Grant(reads=["*"], writes=["*"]),
            "writer": writer("w", mine),
            "both": replace(both, reads=[*both.reads, *below(other_place)], writes=below(mine, other_place)),
            "table": writer("w", mine, table),
            "reader": reader("w", mine, table),
            "blind": reader("w", mine, table, decisions=False),
            "bare": Grant(reads=below(table)),
        }
        set_policy(server, "lake", found_lake.grants)
        yield found_lake


def appending(name: str) -> Callable[[Catalog], Any]:
    return lambda catalog: catalog.load_table(name).append(ROWS).row_count


def counting(name: str) -> Callable[[Catalog], int]:
    return lambda catalog: int(catalog.load_table(name).scan().to_arrow().num_rows)


def together(
    *names: str, reads: str | None = None, isolation: str = "serializable"
) -> Callable[[Catalog], None]:
    def work(catalog: Catalog) -> None:
        with catalog.transaction(isolation) as transaction:
            if reads is not None:
                transaction.load_table(reads).scan().to_arrow()
            for name in names:
                transaction.load_table(name).append(ROWS)

    return work


def test_who_may_write_a_namespace_can_do_everything_in_it(lake: Lake) -> None:
    def create_and_move(catalog: Catalog) -> None:
        catalog.create_table("mine.new", SCHEMA).append(ROWS)
        catalog.rename_table("mine.new", "mine.renamed")
        catalog.create_namespace("mine.below")
        catalog.rename_table("mine.renamed", "mine.below.moved")
        assert catalog.load_table("mine.below.moved").row_count == 1

    def drop_and_restore(catalog: Catalog) -> None:
        catalog.drop_table("mine.below.moved")
        catalog.undrop_table("mine.below.moved")
        catalog.rename_table("mine.below.moved", "mine.back")
        catalog.drop_namespace("mine.below", cascade=True)
        catalog.undrop_namespace("mine.below")
        catalog.drop_namespace("mine.below")
        catalog.drop_table("mine.back", purge=True)

    def keep_up(catalog: Catalog) -> None:
        expired_report = catalog.expire(namespace="mine", older_than=NO_AGE, dry_run=False)
        vacuumed_report = catalog.vacuum(
            namespace="mine", older_than=NO_AGE, dropped_older_than=NO_AGE, dry_run=False
        )
        assert expired_report and vacuumed_report
        assert not [
            struct for struct in (*expired_report, *vacuumed_report) if getattr(struct, "error", None)
        ]

    def check(catalog: Catalog) -> None:
        assert not catalog.fsck("mine", repair=True).of(Severity.DAMAGE)
        assert list(catalog.audit(namespace="mine")) and list(catalog.audit(table="mine.t"))

    for work in (create_and_move, drop_and_restore, together("mine.t", "mine.u"), keep_up, check):
        lake.run("writer", work)
    lake.check_usable()


@pytest.mark.parametrize(
    "work",
    [
        appending("other.t"),
        together("mine.t", "other.t"),
        lambda catalog: catalog.drop_table("other.t"),
        lambda catalog: catalog.rename_table("mine.t", "other.moved"),
        lambda catalog: catalog.drop_namespace("mine", cascade=True),
        lambda catalog: catalog.create_namespace("third"),
        lambda catalog: catalog.save_cut("monday"),
    ],
    ids=["append", "transaction", "drop", "move", "drop-own", "create-namespace", "save-cut"],
)
def test_who_may_write_a_namespace_changes_nothing_beside_it_and_locks_nothing(
    lake: Lake, work: Callable[[Catalog], Any]
) -> None:
    lake.is_refused("writer", work)
    lake.check_usable()
    lake.check_usable(ALL, "other.t")


@pytest.mark.parametrize(
    "work",
    [together("mine.t", "other.t"), lambda catalog: catalog.rename_table("mine.u", "other.moved")],
    ids=["transaction", "move"],
)
def test_who_may_write_two_namespaces_and_not_their_decisions_is_refused_before_anything_is_locked(
    lake: Lake, work: Callable[[Catalog], Any]
) -> None:
    text = lake.is_refused("both", work)
    assert text.startswith("nothing was changed: this transaction is decided in s3://lake/w/_txn/,")
    lake.check_usable("both", "mine.t", "mine.u", "other.t", "other.u")


def test_who_may_write_a_table_writes_it_and_nothing_else(lake: Lake) -> None:
    lake.run("table", appending("mine.t"))
    lake.run("table", together("mine.t", reads="mine.t"))
    lake.run("table", lambda catalog: catalog.expire("mine.t", older_than=NO_AGE, dry_run=False))
    lake.run("table", lambda catalog: catalog.vacuum("mine.t", older_than=NO_AGE, dry_run=False))
    for work in (
        appending("mine.u"),
        lambda catalog: catalog.drop_table("mine.t"),
        lambda catalog: catalog.rename_table("mine.t", "mine.s"),
        lambda catalog: catalog.create_table("mine.x", SCHEMA),
    ):
        lake.is_refused("table", work)
    lake.check_usable("table", "mine.t")
    lake.check_usable()


def test_who_may_write_a_namespace_saves_cuts_of_it_that_its_readers_see_and_its_maintenance_keeps(
    lake: Lake,
) -> None:
    lake.run(ALL, lambda catalog: catalog.create_namespace("mine.below"))
    lake.run("writer", lambda catalog: catalog.create_table("mine.below.t", SCHEMA).append(ROWS))
    rows = lake.run("writer", counting("mine.t"))
    saved = lake.run("writer", lambda catalog: catalog.save_cut("monday", namespace="mine"))
    assert saved.logs == 5
    lake.is_refused("table", lambda catalog: catalog.save_cut("tuesday", namespace="mine"))
    lake.run("table", appending("mine.t"))
    [kept] = lake.run("table", lambda catalog: catalog.expire("mine.t", retain_last=1, dry_run=False))
    assert kept.kept_for_cuts
    lake.run("table", lambda catalog: catalog.vacuum("mine.t", older_than=NO_AGE, dry_run=False))
    grants = lake.grants | {"reader": reader("w", lake.places["mine"])}
    # Without the right to see which cuts there are, nothing is deleted.
    grants["table"] = replace(
        grants["table"], reads=[key for key in grants["table"].reads if "n-" not in key or "_cut" not in key]
    )
    set_policy(lake.server, "lake", grants)
    try:
        for user in ("reader", "writer"):
            assert lake.of_the_past(user, "monday", "mine", counting("mine.t")) == rows
            assert lake.of_the_past(user, "monday", "mine", counting("mine.below.t")) == 1
        lake.run("table", appending("mine.t"))
        text = lake.is_refused(
            "table", lambda catalog: catalog.expire("mine.t", retain_last=1, dry_run=False)
        )
        assert f"{lake.places['mine']}/_cut/" in text
        lake.is_refused("reader", lambda catalog: catalog.drop_cut("monday", namespace="mine"))
    finally:
        set_policy(lake.server, "lake", lake.grants)
    assert lake.of_the_past("writer", "monday", "mine", counting("mine.t")) == rows
    assert not lake.run("writer", lambda catalog: catalog.fsck("mine").of(Severity.DAMAGE))
    lake.run("writer", lambda catalog: catalog.drop_cut("monday", namespace="mine"))
    lake.run("writer", lambda catalog: catalog.drop_namespace("mine.below", cascade=True))
    lake.check_usable()


def test_a_forged_cut_holds_up_nothing_beside_its_folder(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that its user can read: a client that may write one namespace says that it needs the others."""
    other_text = lake.run(ALL, lambda catalog: catalog.load_table("other.t")).location.removeprefix(
        "s3://lake/w/"
    )
    collect = saved_cuts.collect
    with monkeypatch.context() as patch:
        patch.setattr(saved_cuts, "collect", lambda *given: collect(*given) | {other_text: 1})
        lake.run("writer", lambda catalog: catalog.save_cut("forged", namespace="mine"))
    lake.run(ALL, appending("other.t"))
    done = lake.run(ALL, lambda catalog: catalog.expire(retain_last=1, dry_run=False))
    names = {each.name for each in done if each.error}
    assert names and all(name.startswith("`mine`") for name in names)
    assert not any(each.kept_for_cuts for each in done)
    lake.run("writer", lambda catalog: catalog.drop_cut("forged", namespace="mine"))
    lake.check_usable()


def test_a_reader_of_a_table_reads_it_and_what_its_name_leads_through(lake: Lake) -> None:
    rows = lake.run(ALL, counting("mine.t"))
    for user in ("reader", "blind"):
        assert lake.run(user, counting("mine.t")) == rows
        assert lake.run(user, lambda catalog: list(catalog.audit(table="mine.t", verify=False)))
        for name in ("mine.u", "other.t"):
            lake.is_refused(user, counting(name))
        for work in (appending("mine.t"), lambda catalog: catalog.drop_table("mine.t")):
            lake.is_refused(user, work)
    assert not lake.run("reader", lambda catalog: catalog.fsck("mine.t").of(Severity.DAMAGE))
    place = f"s3://lake/{lake.places['mine.t']}"
    by_place: Callable[[Catalog], Any] = lambda catalog: catalog.table_at(place).scan().to_arrow().num_rows  # noqa: E731
    assert lake.run("bare", by_place) == rows
    lake.is_refused("bare", counting("mine.t"))
    lake.check_usable()


def test_a_transaction_whose_decision_may_not_be_read_is_seen_with_the_next_commit(lake: Lake) -> None:
    place = f"s3://lake/{lake.places['mine.t']}"
    users: dict[str, Callable[[Catalog], int]] = {
        "reader": counting("mine.t"),
        "blind": counting("mine.t"),
        "bare": lambda catalog: int(catalog.table_at(place).scan().to_arrow().num_rows),
    }
    rows = lake.run(ALL, counting("mine.t"))
    lake.run(ALL, together("mine.t", "other.t"))
    assert {user: lake.run(user, work) - rows for user, work in users.items()} == {
        "reader": 1,
        "blind": 0,
        "bare": 0,
    }
    # Several logs as of one moment would show half of it.
    text = lake.is_refused("blind", together(reads="mine.t", isolation="snapshot"))
    assert "is part of a transaction whose decision these credentials may not read" in text
    own = lake.grants["writer"]
    blind = replace(own, reads=[key for key in own.reads if not key.startswith("w/_txn")])
    set_policy(lake.server, "lake", lake.grants | {"writer": blind})
    try:
        text = lake.is_refused("writer", lambda catalog: catalog.save_cut("half", namespace="mine"))
    finally:
        set_policy(lake.server, "lake", lake.grants)
    assert "is part of a transaction whose decision these credentials may not read" in text
    lake.run("writer", appending("mine.t"))
    assert {lake.run(user, work) - rows for user, work in users.items()} == {2}
    lake.run("blind", together(reads="mine.t"))


def test_a_right_that_is_lost_in_between_ends_in_one_error_and_the_next_with_the_right_goes_on(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_the_right(self: Any, options: LogOptions) -> None:
        """As if it had been proven before."""

    monkeypatch.setattr("lakelog.log.decisions.DecisionPlace.prove_rights", lose_the_right)
    lake.is_refused("both", together("mine.t", "other.t"))
    text = lake.is_refused("writer", appending("mine.t"))
    assert "is undecided, and these credentials may not decide it" in text
    rows = lake.run("reader", counting("mine.t"))
    lake.run(ALL, appending("mine.t"))
    assert lake.run("writer", counting("mine.t")) == rows + 1
    lake.check_usable("both", "mine.t", "mine.u")
    # The other log has the same decision, which may be read.
    lake.check_usable("both", "other.t")


def test_looking_up_a_dropped_table_takes_no_right_to_write(lake: Lake) -> None:
    """A table that was dropped by its place has a name that the next look-up of a writer removes."""
    lake.run(ALL, lambda catalog: catalog.create_table("mine.gone", SCHEMA))
    gone = lake.run(ALL, lambda catalog: catalog.load_table("mine.gone").location)
    lake.run(ALL, lambda catalog: engine.drop_table_at(catalog, gone))
    grants = lake.grants | {"reader": reader("w", lake.places["mine"], lake.places["mine"])}
    set_policy(lake.server, "lake", grants)
    try:
        assert not lake.run("reader", lambda catalog: catalog.table_exists("mine.gone"))
    finally:
        set_policy(lake.server, "lake", lake.grants)
    assert not lake.run("writer", lambda catalog: catalog.table_exists("mine.gone"))
