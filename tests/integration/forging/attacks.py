"""Names that lead elsewhere, in every object that may hold one; and all that then reads, writes and deletes.

Each attack changes what a forger may change, the folder of the table `forger.t` or the namespace above it, and returns
the objects that it broke. `held` runs all commands of the one who has all rights, and returns what was not as it has to
be. `python -O -m tests.integration.forging.attacks` does so where asserts are no more.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from tests.integration.forging.forge import SCHEMA, Place, build, hashed, new_intent

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.files.data_file import encode_files
from lakelog.catalog.core.logs import Token
from lakelog.catalog.core.schema import PartitionSpec, Schema
from lakelog.log import InvalidInput, LakelogError, MemoryStore, open_store
from lakelog.log.format import hash_of
from lakelog.log.merkle import tree_of

Attack = Callable[[Place], str]
ATTACKS: dict[str, Attack] = {}
NO_AGE = dt.timedelta(0)
ROW = pa.table({"id": [9]}, schema=SCHEMA)


def attack(name: str) -> Callable[[Attack], Attack]:
    def register(forge: Attack) -> Attack:
        ATTACKS[name] = forge
        return forge

    return register


def _intents() -> None:
    """An intent whose transaction leads elsewhere: who has to go on writes "aborted" there."""
    members: dict[str, Callable[[Place], dict[str, Any]]] = {
        "the victim's next version": lambda place: {
            "txn": f"../{place.victim}/_log/{place.last(place.victim) + 1:020d}"
        },
        "an absolute path": lambda place: {"txn": "/tmp/lakelog-forged"},
        "a URL": lambda place: {"txn": f"{place.outside.url}/victim/0"},
        "dots": lambda place: {"txn": ".."},
        "a line feed": lambda place: {"txn": f"x-{'0' * 32}\n"},
        "nothing": lambda place: {"txn": ""},
        "a NUL": lambda place: {"txn": f"x\0-{'0' * 32}"},
        "no hash": lambda place: {"txn": "x" * 26},
        "a hash of something else": lambda place: {"txn": f"x-{'0' * 32}"},
        "a folder above": lambda place: {"folder": ".."},
        "an absolute folder": lambda place: {"folder": "/tmp"},
        "a folder at a URL": lambda place: {"folder": place.outside.url},
        "the victim's folder": lambda place: new_intent([place.own], folder=place.victim),
        "the victim's name": lambda place: new_intent([place.victim, place.own], log=place.victim),
        "the victim alone": lambda place: new_intent([place.victim]),
        "the victim, as a log of it": lambda place: new_intent([place.victim], log=place.own),
        "a log of the same name": lambda place: new_intent([f"above/{place.own}"]),
        "a log at a URL": lambda place: new_intent([f"{place.outside.url}/victim"]),
        "a warehouse elsewhere": lambda place: new_intent(
            [f"{place.url}/{place.own}"], warehouse=place.outside.url
        ),
    }
    for label, of in members.items():

        def forge(place: Place, of: Callable[[Place], dict[str, Any]] = of) -> str:
            return place.forge_next(intent=new_intent([place.own]) | of(place))

        ATTACKS[f"intent to {label}"] = forge


def _proofs() -> None:
    """An intent of a transaction of other logs, with a proof that has to show that the forger's is one of them."""

    def in_a_list_of_its_own(place: Place, victim: dict[str, Any]) -> dict[str, Any]:
        return new_intent([place.own, victim["log"]], folder="")

    root, leaf = "0" * 64, "f" * 64
    proofs: dict[str, Callable[[Place, dict[str, Any]], dict[str, Any]]] = {
        "copied": lambda place, victim: victim,
        "under the forger's name": lambda place, victim: {"log": place.own},
        "in a list of its own": in_a_list_of_its_own,
        "of a longer list": lambda place, victim: {"log": place.own, "index": 2, "count": 3},
        "of a longer list, proven": lambda place, victim: {
            "log": place.own, "index": 2, "count": 3, "proof": [*victim["proof"], leaf]
        },
        "of a shorter list": lambda place, victim: {"log": place.own, "index": 0, "count": 1, "proof": []},
        "by a node": lambda place, victim: {"log": place.own, "proof": [tree_of(["", victim["log"]])[0]]},
        "without end": lambda place, victim: {
            "log": place.own, "index": 2**62, "count": 2**63 - 1, "proof": [root] * 63
        },
        "beyond the end": lambda place, victim: {"log": place.own, "index": 7, "count": 2},
        "of no list": lambda place, victim: {"log": place.own, "index": 0, "count": 0, "proof": []},
    }  # fmt: skip
    for label, of in proofs.items():

        def forge(place: Place, of: Callable[[Place, dict[str, Any]], dict[str, Any]] = of) -> str:
            victim = new_intent([place.victim.split("/")[0], ""])
            place.theirs = victim["txn"]
            return place.forge_next(intent=victim | of(place, victim) | {"txn": place.theirs})

        ATTACKS[f"intent of another transaction {label}"] = forge


def _sidecars() -> None:
    """A sidecar whose name leads elsewhere: readers read it, and expiry deletes it."""
    names: dict[str, Callable[[Place], str]] = {
        "the victim's hint": lambda place: f"../../../../{place.victim}/_log/latest.json",
        "the victim's commit": lambda place: f"../../../../{place.commit_key(place.victim, 1)}",
        "an absolute path": lambda place: "/etc/hostname",
        "a URL": lambda place: f"{place.outside.url}/victim/0",
        "the log": lambda place: "..",
        "a folder below": lambda place: f"below/{1:020d}-{'x' * 26}-{'0' * 16}.bin",
    }
    for label, of in names.items():

        def forge(place: Place, of: Callable[[Place], str] = of) -> str:
            name = of(place)
            data = place.store.get(place.commit_key(place.victim, 1)) or b""
            sidecar = {"name": name, "size_bytes": len(data), "hash": hash_of(data)}
            return place.forge_next(sidecars=[sidecar])

        ATTACKS[f"sidecar to {label}"] = forge


@attack("manifest in the hint")
def manifest_in_the_hint(place: Place) -> str:
    return _hint(place, f"../../../../{place.commit_key(place.victim, 1)}")


@attack("manifest in the hint, absolute")
def manifest_in_the_hint_absolute(place: Place) -> str:
    return _hint(place, "/etc/hostname")


def _hint(place: Place, name: str) -> str:
    place.catalog()._logs.table(place.own).log.snapshot(place.catalog()._logs.table(place.own).current())
    victims = place.store.get(place.commit_key(place.victim, 1)) or b""

    def change(root: dict[str, Any]) -> None:
        stored = {"name": name, "entries": 3, "seq": 1, "sha256": hash_of(victims)}
        root["state"]["files"]["manifests"] = [stored]
        root["uses"] = [name]

    return place.alter(f"{place.own}/_log/latest.json", change)


@attack("hash of a snapshot's commit")
def hash_of_a_snapshots_commit(place: Place) -> str:
    log = place.catalog()._logs.table(place.own)
    log.log.snapshot(log.current())

    def change(root: dict[str, Any]) -> None:
        root["commit_hash"] = f"/../../../../{place.victim}/_log/x"

    return place.alter(f"{place.own}/_log/latest.json", change)


def _children() -> None:
    """A child whose location leads elsewhere."""
    locations: dict[str, Callable[[Place], str]] = {
        "above the warehouse": lambda place: "../outside",
        "the root by dots": lambda place: "x/..",
        "an absolute path with dots": lambda place: "/tmp/../etc",
        "a URL with dots": lambda place: f"{place.outside.url}/victim/../..",
        "a control character": lambda place: "t\n",
        "a backslash": lambda place: "..\\outside",
    }
    for label, of in locations.items():
        for kind, space in (("table", "relation"), ("namespace", "namespace")):

            def forge(
                place: Place, of: Callable[[Place], str] = of, kind: str = kind, space: str = space
            ) -> str:
                above = place.own.rpartition("/")[0]
                place.own = above
                linked = {"event": "entry-linked", "space": space, "name": "child", "kind": kind}
                return place.forge_next(events=[linked | {"id": "x" * 26, "location": of(place)}])

            ATTACKS[f"{kind} at {label}"] = forge


def _links() -> None:
    """A child of the forger's namespace that is the victim's: linked, dropped, or in a dropped namespace."""

    def linked(place: Place, space: str, location: str) -> list[dict[str, Any]]:
        id, kind = location[-26:], "table" if space == "relation" else "namespace"
        event = {"event": "entry-linked", "space": space, "name": "child", "kind": kind, "id": id}
        unlinked = {"event": "entry-unlinked", "space": space, "name": "child", "id": id, "dropped": True}
        return [event | {"location": location}, unlinked]

    for label, of in {
        "the victim's table": lambda place: ("relation", place.victim),
        "the victim's namespace": lambda place: ("namespace", place.victim.rpartition("/")[0]),
    }.items():
        for count, how in ((1, "linked"), (2, "dropped")):

            def forge(place: Place, of: Callable[[Place], tuple[str, str]] = of, count: int = count) -> str:
                space, location = of(place)
                place.own = place.own.rpartition("/")[0]
                place.forge_next(events=linked(place, space, location)[:count])
                return location

            def below(place: Place, of: Callable[[Place], tuple[str, str]] = of, count: int = count) -> str:
                space, location = of(place)
                above = place.own.rpartition("/")[0]
                place.own = place.child(above, "nested")
                place.forge_next(events=linked(place, space, location)[:count])
                place.catalog().drop_namespace("forger.nested", cascade=True)
                return location

            ATTACKS[f"{label} {how} by the forger"] = forge
            ATTACKS[f"{label} {how} in a namespace that is dropped"] = below


def _data_files() -> None:
    paths: dict[str, Callable[[Place], str]] = {
        "the victim's log": lambda place: f"../../{place.commit_key(place.victim, 1)}",
        "dots in a path": lambda place: "/etc/../etc/hostname",
        "dots in a URL": lambda place: f"{place.outside.url}/a/../victim/0",
        "a NUL": lambda place: "data/x\0",
        "nothing": lambda place: "",
    }
    for label, of in paths.items():

        def inline(place: Place, of: Callable[[Place], str] = of) -> str:
            file = {"path": of(place), "size": 1, "rows": 1}
            event = {"event": "files-changed", "operation": "append", "added": [file], "added_files": 1}
            return place.forge_next(events=[event])

        def bulk(place: Place, of: Callable[[Place], str] = of) -> str:
            file = DataFile(path=of(place), size_bytes=1, rows=1)
            data = encode_files([file], Schema(fields=(), last_id=0), [PartitionSpec(id=0, fields=())])
            name = f"{place.head + 1:020d}-{'x' * 26}-{hash_of(data)[:16]}.bin"
            place.store.put(f"{place.own}/_log/sidecars/{name}", data)
            event = {"event": "files-changed", "operation": "append", "added_sidecar": 0, "added_files": 1}
            sidecar = {"name": name, "size_bytes": len(data), "hash": hash_of(data)}
            return place.forge_next(events=[event], sidecars=[sidecar])

        ATTACKS[f"data file at {label}"] = inline
        ATTACKS[f"data file in a list at {label}"] = bulk


@attack("vectors in the victim's log")
def vectors_in_the_victims_log(place: Place) -> str:
    path = f"../../{place.commit_key(place.victim, 1)}"
    deletes = {"rows": 1, "size": 1, "crc": 0, "path": path, "offset": 0}
    file = {"path": "data/x", "size": 1, "rows": 1, "deletes": deletes}
    event = {"event": "files-changed", "operation": "append", "added": [file], "added_files": 1}
    return place.forge_next(events=[event])


@attack("object of a saved cut")
def object_of_a_saved_cut(place: Place) -> str:
    place.own = ""
    data = place.store.get(place.commit_key(place.victim, 1)) or b""
    key = f"../{place.commit_key(place.victim, 1)}"
    return _root_event(
        place, {"event": "cut-saved", "name": "forged", "object": key, "hash": hash_of(data), "logs": 1}
    )


def _root_event(place: Place, event: dict[str, Any]) -> str:
    head = max(int(key[-25:-5]) for key in place.store.list_after("_log/0"))
    before = place.read(f"_log/{head:020d}.json")
    kept = {name: before[name] for name in ("kind", "format", "log_id")}
    rest = {
        "version": head + 1, "commit_id": "c" * 26, "attempt_id": "d" * 26, "base": head, "prev": before["hash"],
        "time_us": before["time_us"] + 1, "events": [event],
    }  # fmt: skip
    key = f"_log/{head + 1:020d}.json"
    place.store.put(key, hashed(kept | rest))
    return key


_intents()
_proofs()
_sidecars()
_children()
_links()
_data_files()


def held(name: str) -> list[str]:
    """Run one attack, then everything; return what was touched, changed or said and must not have been."""
    place = build()
    broken_attacks = ATTACKS[name](place)
    forgers = place.own.split("/")[0]  # dropping and purging change all of the forger's namespace
    place.store.touched.clear()
    place.outside.touched.clear()
    data_before = {key: place.store.get(key) for key in place.store.list_after("")}
    wrong: list[str] = []
    try:
        findings = place.catalog().fsck()
        if not any(broken_attacks in f"{finding.where} {finding.what}" for finding in findings.found):
            wrong.append(
                f"fsck does not name {broken_attacks}, only {[finding.kind for finding in findings.found]}"
            )
    except Exception as error:
        wrong.append(f"fsck ended with {type(error).__name__}: {error}")
    for label, command in commands(place):
        try:
            command()
        except LakelogError as error:
            if "victim" in label and place.own:
                wrong.append(f"{label} ended with {error!r}")
        except Exception as error:
            wrong.append(f"{label} ended with {type(error).__name__}: {error}")
    if place.outside.touched:
        wrong.append(f"outside was touched: {sorted(place.outside.touched)}")
    if stray := sorted(filter(_is_stray, place.store.touched)):
        wrong.append(f"strange keys were asked for: {stray}")
    if place.theirs and (led_keys := sorted(key for key in place.store.touched if place.theirs in key)):
        wrong.append(f"it led to the decision of another transaction: {led_keys}")
    for key in {*data_before, *place.store.list_after("")}:
        if _is_the_forgers(key, forgers) or key.startswith(f"{place.victim}/"):
            continue
        if key not in data_before and "_txn/" in key:
            continue
        if place.store.get(key) != data_before.get(key) and not key.startswith(("_log/", "_cut/")):
            wrong.append(f"{key} was changed")
    for key, data in data_before.items():
        if key.startswith(f"{place.victim}/") and data is not None and place.store.get(key) != data:
            wrong.append(f"the victim's {key} was changed")
    return wrong


def _is_stray(key: str) -> bool:
    """Whether a key leads out of the warehouse."""
    return ".." in key.split("/") or key.startswith("/") or "//" in key or "\0" in key


def _is_the_forgers(key: str, folder: str) -> bool:
    return key.startswith(f"{folder}/") if folder else key.startswith("_log/")


def commands(place: Place) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what the one with all rights does, on the forger's table, on the victim's, and on all."""

    def rows(name: str) -> Any:
        return place.catalog().load_table(name).scan().to_arrow()

    def append(name: str) -> Any:
        return place.catalog().load_table(name).append(ROW)

    yield "read the victim's", lambda: rows("victim.t")
    for name in ("forger.t", "forger.child"):
        of_table: dict[str, Callable[[Catalog, str], Any]] = {
            "read": lambda catalog, name: catalog.load_table(name).scan().to_arrow(),
            "history of": lambda catalog, name: list(catalog.load_table(name).history()),
            "append to": lambda catalog, name: catalog.load_table(name).append(ROW),
            "delete from": lambda catalog, name: catalog.load_table(name).delete([("id", "=", 0)]),
            "expire": lambda catalog, name: catalog.expire(name, retain_last=1, dry_run=False),
            "vacuum": lambda catalog, name: catalog.vacuum(name, older_than=NO_AGE, dry_run=False),
        }
        for label, command in of_table.items():
            yield (
                f"{label} {name}",
                partial(lambda command, name: command(place.catalog(), name), command, name),
            )
    yield "list", lambda: [place.catalog().list_tables("forger"), place.catalog().list_namespaces("forger")]
    yield "namespaces below", lambda: place.catalog().list_tables("forger.child")
    yield "audit", lambda: list(place.catalog().audit())
    yield "picture", lambda: place.catalog().picture().to_html()
    yield "cuts", lambda: place.catalog().cuts()
    yield "read a cut", lambda: Catalog(place.url, as_of="forged").load_table("victim.t").scan().to_arrow()
    yield "drop a cut", lambda: place.catalog().drop_cut("forged")
    yield "save a cut", lambda: place.catalog().save_cut("tuesday")
    yield "fsck", lambda: place.catalog().fsck(deep=True, all_versions=True)
    yield "repair", lambda: place.catalog().fsck(repair=True)
    yield "expire all", lambda: place.catalog().expire(namespace="forger", retain_last=1, dry_run=False)
    yield (
        "vacuum all",
        lambda: place.catalog().vacuum(older_than=NO_AGE, dropped_older_than=NO_AGE, dry_run=False),
    )
    for name in ("child", "nested"):
        of_name: dict[str, Callable[[Catalog, str], Any]] = {
            "replace": lambda catalog, name: engine.commit_stage(
                catalog, engine.stage(catalog, "replace", name, SCHEMA)
            ),
            "rename": lambda catalog, name: catalog.rename_table(name, "forger.moved"),
            "drop": lambda catalog, name: catalog.drop_table(name),
            "drop the namespace": lambda catalog, name: catalog.drop_namespace(name, cascade=True),
            "drop the table in": lambda catalog, name: catalog.drop_table(f"{name}.t"),
            "undrop": lambda catalog, name: catalog.undrop_table(name),
            "undrop the namespace": lambda catalog, name: catalog.undrop_namespace(name),
            "drop again": lambda catalog, name: catalog.drop_namespace(name, cascade=True),
        }
        for label, command in of_name.items():
            forged_text = f"forger.{name}"
            yield (
                f"{label} {forged_text}",
                partial(lambda act, name: act(place.catalog(), name), command, forged_text),
            )
    yield "drop", lambda: place.catalog().drop_table("forger.t")
    yield "drop all", lambda: place.catalog().drop_namespace("forger", cascade=True)
    yield (
        "vacuum what was dropped",
        lambda: place.catalog().vacuum(older_than=NO_AGE, dropped_older_than=NO_AGE, dry_run=False),
    )
    yield "append to the victim's", lambda: append("victim.t")


BAD_KEYS = (
    "", "/etc/hostname", "..", "../x", "a/../b", "a/..", "./a", "a/./b", "a//b", "a/", "s3://b/x", "file:///x", "a\0b",
    "a\nb", "a\\b", "a\x7f", "x" * 1025, "\ud800",
)  # fmt: skip
"""No keys of objects, for any store."""


def takes_bad_keys(url: str) -> list[str]:
    """Return which of the operations of a store take a key that leads out of it."""
    store = open_store(url)
    operations: dict[str, Callable[[str], Any]] = {
        "get": store.get,
        "get_many": lambda key: store.get_many([key]),
        "put_if_absent": lambda key: store.put_if_absent(key, b"x"),
        "put": lambda key: store.put(key, b"x"),
        "delete": lambda key: store.delete([key]),
        "open_input": store.open_input,
    }
    wrong = []
    for key in BAD_KEYS:
        for name, operation in operations.items():
            try:
                operation(key)
            except InvalidInput:
                continue
            except Exception as error:
                wrong.append(f"{name} of {key[:20]!r} raised {error!r}")
            else:
                wrong.append(f"{name} takes {key[:20]!r}")
    for prefix in ("../", "..", "/etc/", "a/../../"):
        for listing in (store.list_after, store.list_sizes, store.list_folders):
            try:
                list(listing(prefix))
            except InvalidInput:
                continue
            wrong.append(f"{listing.__name__} takes {prefix!r}")
    return wrong


def token_that_leads_elsewhere() -> list[str]:
    """A caller's own ids become keys too."""
    place, wrong = build(), []
    for id in ("../x", "/x", "a/b", ""):
        token = Token(commit_id=id, bases={})
        try:
            place.catalog().save_cut("forged", token=token)
        except InvalidInput:
            continue
        wrong.append(f"save_cut takes the commit id {id!r}")
    return wrong


def main(every: int) -> None:
    """Try one attack in so many, and say what was not held off."""
    import tempfile

    failed_number = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for url in (folder, "memory://bad-keys"):
            failed_number += _said_number(f"keys of {url.partition(':')[0]}", takes_bad_keys(url))
    failed_number += _said_number("ids of a caller", token_that_leads_elsewhere())
    tried_attacks = list(ATTACKS)[::every]
    for name in tried_attacks:
        failed_number += _said_number(name, held(name))
        MemoryStore._named.clear()
    print(
        f"{len(tried_attacks) + 3} attacks, {failed_number} not held off, with{'' if __debug__ else 'out'} asserts"
    )
    sys.exit(failed_number > 0)


def _said_number(name: str, wrong: list[str]) -> int:
    for text in wrong:
        print(f"{name}: {text}")
    return bool(wrong)


if __name__ == "__main__":
    main(int(sys.argv[1]))
