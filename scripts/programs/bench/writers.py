"""Writers that append to one table at the same time: appends a second, waits, and what each writer gets of them.

Each line is a run of its own: so many processes, each with so many threads that append small Arrow tables one after
another for some seconds. With `--warming`, what was appended in the first ones does not count, nor what was when some
writers had ended. On S3 (versitygw) a proxy holds each PUT 60 ms, each GET 25 ms and each LIST 50 ms. At the end the
table is counted: every append that was acknowledged has to be there once.

`--creates` creates tables in one namespace in place of appends. `--appends` goes on until there are so many, and says
how long a count of the rows takes a new client then, through the same proxy.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pyarrow as pa

from lakelog.catalog import Aggregate, Catalog, LogOptions
from lakelog.log import wait_for_background
from lakelog.testing.versitygw import versitygw
from programs import story

SCHEMA = pa.schema({"id": pa.int64(), "text": pa.string()})
NAMES = "names"
COOLING_S = 2.0
RUNS = "1x1,4x1,8x1,1x8,4x8,1x100,20x5"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench writers", description=__doc__)
    parser.add_argument("--runs", default=RUNS, help="processes x threads of each run (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10, help="of each run (default: %(default)s)")
    parser.add_argument(
        "--warming", type=float, default=0, help="seconds before these (default: %(default)s)"
    )
    parser.add_argument(
        "--rows", type=int, default=10, help="of an append, 100 bytes each (default: %(default)s)"
    )
    parser.add_argument(
        "--proposals", action="store_true", help="processes propose appends to each other, and combine them"
    )
    parser.add_argument("--creates", action="store_true", help="tables in one namespace, in place of appends")
    parser.add_argument("--appends", type=int, default=0, help="of all writers, in place of --seconds")
    parser.add_argument("--on", choices=("folder", "s3"), default="s3")
    parser.add_argument(
        "--held", default="60,25,50", help="ms of a PUT, a GET and a LIST (default: %(default)s)"
    )
    arguments = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        server = versitygw(Path(folder) / "s3") if arguments.on == "s3" else nullcontext()
        with server as s3:
            credentials = nullcontext() if s3 is None else s3.credentials()
            with credentials:
                for number, run in enumerate(arguments.runs.split(",")):
                    processes, threads = (int(text) for text in run.split("x"))
                    place = f"s3://lake/w{number}" if s3 is not None else str(Path(folder) / f"w{number}")
                    held = arguments.held.split(",")
                    direct = {} if s3 is None else s3.options
                    with slowly(None if s3 is None else s3.endpoint, held) as (settings, requests):
                        found = _run(place, direct, settings, processes, threads, arguments)
                    lines.append([run, *found, *requests])
    header = [
        "processes x threads",
        "appends/s",
        "median, p99, longest ms",
        "least, most of one",
        "versions",
        "CPU s",
    ]
    story.table([*header, "CPU s of the server", "of the proxy, requests"], lines, title=__doc__)


def _run(
    place: str,
    direct: Mapping[str, str],
    settings: Mapping[str, str],
    processes: int,
    threads: int,
    arguments: argparse.Namespace,
) -> list[str]:
    catalog = Catalog(place, options=direct)
    catalog.create_table("t", SCHEMA)
    catalog.create_namespace(NAMES)
    for number in range(processes):
        catalog.create_table(f"other_{number}", SCHEMA)
    wait_for_background()
    order = json.dumps(
        {
            "place": place,
            "settings": dict(settings),
            "threads": threads,
            "warming_s": arguments.warming,
            "s": arguments.seconds,
            "cooling_s": COOLING_S if arguments.warming else 0.0,
            "rows": arguments.rows,
            "proposals": arguments.proposals,
            "creates": arguments.creates,
            "appends": -(-arguments.appends // (processes * threads)),
        }
    )
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                __name__ if __name__ != "__main__" else "programs.bench.writers",
                "--work",
                str(number),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LAKELOG_BENCH_ORDER": order},
        )
        for number in range(processes)
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    answers = [json.loads(worker.communicate()[0]) for worker in workers]
    waits = sorted(wait for answer in answers for wait in answer["waits"])
    if not waits:
        raise SystemExit("no append was done in this time: give more --seconds")
    each = [count for answer in answers for count in answer["counts"]]
    acknowledged = sum(answer["done"] for answer in answers)
    unknown = sum(answer["failed"] for answer in answers)
    found, versions = (_names if arguments.creates else _appends)(catalog, arguments.rows)
    if not acknowledged <= found <= acknowledged + unknown:
        raise SystemExit(
            f"{found} are there, and {acknowledged} were acknowledged: some are lost, or there twice"
        )
    seconds = arguments.seconds
    counted = ""
    if arguments.appends:
        seconds = max(answer["took_s"] for answer in answers)
        counted = f"; {len(waits)} in {seconds:.1f} s, count {_count_s(place, settings) * 1000:.0f} ms"
    middle, late = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    return [
        f"{len(waits) / seconds:.1f}" + (f" ({unknown} failed)" if unknown else "") + counted,
        f"{middle * 1000:.0f}, {late * 1000:.0f}, {waits[-1] * 1000:.0f}",
        f"{min(each)}, {max(each)}",
        str(versions),
        f"{sum(answer['cpu_s'] for answer in answers):.1f}",
    ]


def _appends(catalog: Catalog, rows: int) -> tuple[int, int]:
    """Return how many appends are there, each with all of its rows once, and the versions that they are in."""
    table = catalog.load_table("t")
    ids = table.scan().to_arrow()["id"].to_pylist()
    if len(set(ids)) != len(ids):
        raise SystemExit(f"of {len(ids)} rows some are there twice")
    if len(ids) % rows:
        raise SystemExit(f"{len(ids)} rows are there: an append is there in part")
    return len(ids) // rows, table.version - 1


def _names(catalog: Catalog, rows: int) -> tuple[int, int]:
    """Return how many tables are there, and the versions that link them."""
    linked = {
        entry.version for entry in catalog.audit() if entry.name == (NAMES,) and "link" in entry.operations
    }
    return len(catalog.list_tables(NAMES)), len(linked)


def _count_s(place: str, settings: Mapping[str, str]) -> float:
    """Return how long a client that knows nothing yet takes to count the rows."""
    catalog = Catalog(place, options=settings)
    catalog.load_table("other_0")
    begun = time.monotonic()
    counted = catalog.load_table("t").scan().aggregate([Aggregate("count")])
    assert counted is not None and counted.num_rows == 1
    return time.monotonic() - begun


@contextmanager
def slowly(endpoint: str | None, held: list[str]) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Give the settings of clients of the proxy, and a list that has what it counted once the block has ended."""
    counted: list[str] = []
    if endpoint is None:
        yield {}, counted
        counted += ["", ""]
        return
    server = endpoint.removeprefix("http://")
    before_s = _cpu_of_server(server)
    proxy = subprocess.Popen(
        [*_proxy(), server, *held],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert proxy.stdout is not None
    yield {"endpoint": proxy.stdout.readline().strip(), "region": "us-east-1", "path_style": "true"}, counted
    counted.append(f"{_cpu_of_server(server) - before_s:.1f}")
    counted.append(proxy.communicate("")[0].strip())


@functools.cache
def _proxy() -> list[str]:
    """Build the proxy, and return its command."""
    if shutil.which("go") is None:
        raise SystemExit("the slow S3 is a program in Go, as versitygw is: install Go")
    source = Path(__file__).parent / "workers" / "slow_s3.go"
    folder = tempfile.mkdtemp(prefix="lakelog-bench-")
    atexit.register(shutil.rmtree, folder)
    subprocess.run(["go", "build", "-o", f"{folder}/slow_s3", str(source)], check=True)
    return [f"{folder}/slow_s3"]


def _cpu_of_server(address: str) -> float:
    """Return the seconds of processor that the server at this address has taken."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if address.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                times = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
                return sum(int(ticks) for ticks in times) / os.sysconf("SC_CLK_TCK")
    return 0.0


def work(number: int) -> None:
    """Append as `_run` orders, once it says so; print what became of it."""
    order = json.loads(os.environ["LAKELOG_BENCH_ORDER"])
    catalog = Catalog(
        order["place"],
        options=order["settings"],
        log_options=LogOptions(proposals=order["proposals"]),
    )
    # What a process imports, and asks S3, when it first writes is no part of an append.
    catalog.load_table(f"other_{number}").append(pa.table({"id": [number], "text": [""]}, schema=SCHEMA))
    catalog.load_table("t")
    print("ready", flush=True)
    sys.stdin.readline()
    waits: list[list[float]] = [[] for _ in range(order["threads"])]
    done = [0] * order["threads"]
    failed = [0]
    start = time.monotonic() + order["warming_s"]
    end = start + order["s"]
    used_s: list[float] = []
    for after_s in () if order["appends"] else (order["warming_s"], order["warming_s"] + order["s"]):
        threading.Timer(after_s, lambda: used_s.append(time.process_time())).start()

    def append(thread: int) -> None:
        table = catalog.load_table("t")
        ids = (number * order["threads"] + thread) * 1_000_000
        text = pa.array(["x" * 92] * order["rows"])  # once: making data is no part of an append
        while (begun := time.monotonic()) < end + order["cooling_s"] or order["appends"]:
            if order["appends"] and done[thread] + failed[0] >= order["appends"]:
                break
            rows = range(ids, ids := ids + order["rows"])
            data = pa.table({"id": pa.array(rows, pa.int64()), "text": text}, schema=SCHEMA)
            try:
                if order["creates"]:
                    catalog.create_table(f"{NAMES}.t_{ids}", SCHEMA)
                else:
                    table = table.append(data)
            except Exception as error:
                print(error, file=sys.stderr)
                failed[0] += 1
            else:
                done[thread] += 1
                if start <= begun < end or order["appends"]:
                    waits[thread].append(time.monotonic() - begun)

    threads = [threading.Thread(target=append, args=(thread,)) for thread in range(order["threads"])]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    counts = [len(own) for own in waits]
    flat = [wait for own in waits for wait in own]
    print(
        json.dumps(
            {
                "waits": flat,
                "counts": counts,
                "done": sum(done),
                "failed": failed[0],
                "cpu_s": used_s[1] - used_s[0] if len(used_s) == 2 else time.process_time(),
                "took_s": time.monotonic() - start,
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(int(sys.argv[2]))
    else:
        main()
