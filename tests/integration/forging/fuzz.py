"""Forged objects of every kind, each asked of every reader, writer and command: they end by an answer or by one line.

A case replaces one object of a small warehouse (`forged_world`) by one with a valid hash and hostile members, or
damages it at random. Then everything is asked, here and through the command, and each answer has to come within
`TIME_MAX_S` and `MEMORY_MAX_BYTES` of what the same question costs without the forgery. An error is one of lakelog's,
one line that names the object's log; and the rest of the warehouse is still checked, audited and vacuumed.

`python -m tests.integration.forging.fuzz [--seed S] [--cases N] [--only TEXT]` runs the cases that were thought of and
N random ones, and prints what failed; it is a process of its own, since a case may take all memory.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from tests.integration.forging import hostile, thought_of
from tests.integration.forging.forged_world import OPTIONS, World, build, kind_of, rows

from lakelog.catalog import col
from lakelog.catalog.core.files.arrow_lists import decode_table
from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.keeping.maintenance.fsck import Severity, check_warehouse
from lakelog.cli.main import run as run_command
from lakelog.log import LakelogError
from lakelog.log.errors import FormatError

TIME_MAX_S = 10.0
HANGS_AFTER_S = 20 * TIME_MAX_S
MEMORY_MAX_BYTES = 256 * 1024 * 1024
MESSAGE_MAX = 4000
ALL_MEMORY_BYTES = 12 * 1024**3
JSON_KINDS = ("commit", "hint", "snapshot", "base", "decision", "cut")
KINDS = (*JSON_KINDS, "sidecar", "manifest", "vectors", "rights")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    key: str
    forge: Callable[[World], Any]


def questions(world: World) -> dict[str, Callable[[], Any]]:
    """Return what is asked, by what is read: of a.t and a.old, which are forged, of all, and of the rest."""

    def command(*arguments: str) -> Callable[[], Any]:
        def ask() -> Any:
            out, err = _Output(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run_command([*arguments, "--warehouse", world.url])
            output = err.getvalue()
            if (
                code
                and len(output.strip().splitlines()) != 1
                and not (out.getvalue() or out.bytes.getvalue())
            ):
                raise AssertionError(f"the command said {output[:400]!r} with the code {code}")
            return code

        return ask

    def table(name: str) -> Any:
        return world.catalog().load_table(name)

    asked: dict[str, Callable[[], Any]] = {}
    for name in ("a.t", "a.old"):
        of_table: dict[str, Callable[[Any], Any]] = {
            "scan": lambda table: table.scan().to_arrow(),
            "filter": lambda table: table.scan(filter=(col("id") > 1) & (col("part") == "x")).to_arrow(),
            "history": lambda table: list(table.history()),
            "past": lambda table: table.at(version=5).scan().to_arrow(),
            "append": lambda table: table.append(rows(900)),
            "delete": lambda table: table.delete(col("id") == 2),
        }
        for label, use in of_table.items():
            asked[f"{label} {name}"] = partial(lambda use, name: use(table(name)), use, name)
    asked |= {
        "fsck": command("fsck", "--all-versions"),
        "audit": command("audit"),
        "audit as JSON": command("audit", "--json"),
        "vacuum": command("vacuum"),
        "expire": command("expire", "--retain-last", "1"),
        "ls": command("ls", "a"),
        "show": command("show", "a.t"),
        "history": command("history", "a.t"),
        "history of a namespace": command("history", "a"),
        "history as a graph": command("history", "a.t", "--graph"),
        "picture": lambda: world.catalog().picture("a.t").to_html(),
        "picture of a namespace": lambda: world.catalog().picture("a").to_html(),
        "picture as JSON": command("view", "--json"),
        "files": command("files", "a.t"),
        "cat": command("cat", "a.t", "3"),
        "refs": command("inspect", "a.t", "refs"),
        "inspect": command("inspect", "a.t", "files"),
        "inspect the log": command("inspect", "a.t", "log"),
        "dropped": command("dropped", "a"),
        "changes": lambda: table("a.t").changes(1).to_arrow(),
        "as of monday": lambda: world.catalog("monday").load_table("a.t").scan().to_arrow(),
        "as of a's monday": lambda: world.catalog("monday", "a").load_table("a.t").scan().to_arrow(),
        "cuts": lambda: (world.catalog().cuts(), world.catalog().cuts("a")),
        "view": lambda: world.catalog().load_view("a.v"),
        "save a cut": lambda: world.catalog().save_cut("tuesday"),
        "save a cut of a": lambda: world.catalog().save_cut("tuesday", namespace="a"),
        "transaction": lambda: _together(world),
        "vacuum for good": lambda: world.catalog().vacuum(dry_run=False),
        "expire for good": lambda: world.catalog().expire(retain_last=1, dry_run=False),
        "repair": lambda: world.catalog().fsck(repair=True),
        "drop a cut": lambda: world.catalog().drop_cut("monday"),
        "drop all": lambda: world.catalog().drop_namespace("a", cascade=True),
    }
    return asked


class _Output(io.StringIO):
    """A standard output, to which some write bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = io.BytesIO()

    @property
    def buffer(self) -> Any:
        return self.bytes


def _together(world: World) -> None:
    with world.catalog().transaction() as catalog:
        catalog.load_table("a.t").append(rows(901))
        catalog.load_table("a.old").append(rows(902))


QUICK = (
    "scan",
    "filter",
    "history",
    "fsck",
    "audit",
    "vacuum",
    "append",
    "delete",
    "expire",
    "as of",
    "repair",
    "drop all",
)
"""The beginnings of the questions that are asked in every case; the others in each third."""


class Slow(BaseException):
    """The time is over."""


def _alarm(signum: int, frame: Any) -> None:
    raise Slow


def measured(ask: Callable[[], Any]) -> tuple[Any, float, int]:
    """Return what a question ends with (an exception is one), its seconds, and its most memory above that before."""
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    # Its own processor time: how long it takes depends on what else the machine does. What hangs takes none.
    memory_before, start_time = _memory("VmRSS"), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, 1.2 * TIME_MAX_S)
    signal.setitimer(signal.ITIMER_REAL, HANGS_AFTER_S)
    try:
        end = ask()
    except (Exception, Slow) as error:
        end = error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return end, time.process_time() - start_time, _memory("VmHWM") - memory_before


def _memory(name: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(f"{name}:"))


def tried_texts(world: World, case: Case, number: int, usual: dict[str, tuple[float, int]]) -> list[str]:
    """Return what was wrong in a case."""
    world.restore()
    case.forge(world)
    forged_objects = dict(world.store._objects)
    wrong: list[str] = []
    for question, ask in questions(world).items():
        if not question.startswith(QUICK) and (number + len(question)) % 3:
            continue
        world.store._objects.clear()
        world.store._objects.update(forged_objects)
        end, took_s, took_bytes = measured(ask)
        usual_s, usual_bytes = usual.get(question, (0.0, 0))
        if took_s - usual_s > TIME_MAX_S:
            wrong.append(f"{question}: {took_s:.1f} s")
        if took_bytes - usual_bytes > MEMORY_MAX_BYTES:
            wrong.append(f"{question}: {took_bytes / 1e6:.0f} MB")
        if isinstance(end, LakelogError):
            text = end.message
            if "\n" in text.strip() or len(text) > MESSAGE_MAX:
                wrong.append(f"{question}: a message of {len(text)} characters: {text[:200]!r}")
            elif isinstance(end, FormatError) and not _is_named(world, text):
                wrong.append(f"{question}: names no object: {text[:300]}")
        elif isinstance(end, BaseException):
            where = traceback.extract_tb(end.__traceback__)[-1]
            wrong.append(
                f"{question}: {type(end).__name__}: {str(end)[:200]} at {where.filename[-40:]}:{where.lineno}"
            )
    world.store._objects.clear()
    world.store._objects.update(forged_objects)
    return wrong + _remaining_texts(world, case)


def _is_named(world: World, text: str) -> bool:
    ids = {key.split("/")[-1] for key in world.objects} | {
        part[2:] for key in world.objects for part in key.split("/")
    }
    return world.url in text or "the data file" in text or any(len(id) > 8 and id in text for id in ids)


def _remaining_texts(world: World, case: Case) -> list[str]:
    """Return what is no longer checked of a table that is not forged, and does not lie below what is."""
    broken = (world.places["a.t"], world.places["a.old"], world.places["a"], "_cut")
    if not case.key.startswith(broken) and "_txn/" not in case.key:
        return []
    try:
        findings = check_warehouse(LogCache(WarehouseStores(world.url, {}), {}, OPTIONS))
        again = world.catalog().load_table("z.rest").scan().to_arrow().num_rows
    except Exception as error:
        return [f"the rest: {type(error).__name__}: {error}"]
    harmed_texts = [
        f"the rest: {finding.kind} {finding.where}"
        for finding in findings.of(Severity.DAMAGE)
        if world.places["z.rest"] in finding.where
    ]
    return harmed_texts + (
        [] if again == 2 and findings.checked["data files"] else ["the rest: rows of z.rest"]
    )


# Cases


def random_cases(world: World, seed: int, count: int) -> Iterator[Case]:
    rng = random.Random(seed)
    keys = {kind: world.keys(kind) for kind in KINDS}
    for number in range(count):
        kind = rng.choice([kind for kind in KINDS if keys[kind]])
        key = rng.choice(keys[kind])
        name = f"{seed}.{number} {kind}"
        if kind in JSON_KINDS and rng.random() < 0.75:
            yield _of_json(world, rng, key, name)
        elif kind in ("sidecar", "manifest") and rng.random() < 0.6:
            label = rng.choice(list(hostile.LISTS))
            yield Case(f"{name} {label}", key, partial(forge_list, key=key, what=label))
        else:
            data = hostile.damaged(world.objects[key], rng)
            if kind in JSON_KINDS and rng.random() < 0.5:
                plain = world.objects[key][:-75]
                data = hostile.sealed(hostile.damaged(plain, rng) + b"}")
            yield Case(f"{name} damaged", key, partial(_put, key=key, data=data))


def _of_json(world: World, rng: random.Random, key: str, name: str) -> Case:
    plain = msgspec.json.decode(world.objects[key])
    plain.pop("hash", None)
    path = rng.choice(hostile.paths_of(plain))
    text = ".".join(map(str, path))
    if rng.random() < 0.1:
        return Case(
            f"{name} without {text}", key, lambda world: _put(world, key, hostile.without(plain, path))
        )
    label = rng.choice(list(hostile.VALUES))
    if len(path) == 1 and rng.random() < 0.1:
        return Case(
            f"{name} twice {text} {label}",
            key,
            lambda world: _put(world, key, hostile.twice(plain, str(path[0]), hostile.VALUES[label]())),
        )
    return Case(
        f"{name} {text} is {label}",
        key,
        lambda world: _put(world, key, hostile.with_value(plain, path, hostile.VALUES[label]())),
    )


def _put(world: World, key: str, data: bytes) -> None:
    world.put(key, data)


def forge_list(world: World, key: str, what: str) -> None:
    """Put a hostile list of files in the place of a sidecar or manifest."""
    try:
        table = decode_table(world.objects[key])
    except FormatError:
        table = pa.table({"path": ["data/x"], "rows": [1], "size": [1]})
    world.put(key, hostile.LISTS[what](table))


def all_cases(world: World, seed: int, count: int) -> Iterator[Case]:
    for name, (key, forge) in thought_of.cases(world).items():
        yield Case(name, key, forge)
    for kind in ("sidecar", "manifest"):
        for label in hostile.LISTS:
            for key in world.keys(kind)[:1]:
                yield Case(f"{kind} {label}", key, partial(forge_list, key=key, what=label))
    yield from random_cases(world, seed, count)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="one in so many of all cases")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (ALL_MEMORY_BYTES, ALL_MEMORY_BYTES))
    for ends in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(ends, _alarm)
    world, start_time = build(), time.monotonic()
    usual: dict[str, tuple[float, int]] = {}
    for question, ask in questions(world).items():
        world.restore()
        end, took_s, took_bytes = measured(ask)
        if isinstance(end, BaseException):
            raise SystemExit(f"without a forgery, {question} ends with {end!r}")
        usual[question] = took_s, took_bytes
    counts, failed_number = Counter[str](), 0
    for number, case in enumerate(all_cases(world, arguments.seed, arguments.cases)):
        if arguments.only not in case.name or number % arguments.every:
            continue
        print(f"trying {case.name[:150]}", file=sys.stderr, flush=True)
        wrong = tried_texts(world, case, number, usual)
        counts[kind_of(case.key)] += 1
        failed_number += bool(wrong)
        for text in wrong:
            print(f"{case.name[:150]}: {text}", flush=True)
    print(f"{dict(counts)}")
    print(f"{sum(counts.values())} cases, {failed_number} failed, {time.monotonic() - start_time:.0f} s")
    sys.exit(failed_number > 0)


if __name__ == "__main__":
    main()
