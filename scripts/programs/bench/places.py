"""Places for warehouses: a folder, memory, versitygw, and a proxy that makes versitygw as slow as S3."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lakelog.catalog import Catalog, engine
from lakelog.log import CountingStore, LogOptions, open_store
from lakelog.testing.moto_server import S3Server
from lakelog.testing.versitygw import versitygw
from programs.bench.measure import cpu_s_of

HELD_MS = (60.0, 25.0, 50.0)
"""The delays of a PUT, a GET and a LIST."""


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as name:
        yield Path(name)


def memory() -> str:
    """Return a new warehouse in memory."""
    return f"memory://{uuid.uuid4().hex}"


def counted(
    warehouse: str | Path,
    kind: type[CountingStore] = CountingStore,
    *,
    options: Mapping[str, str] | None = None,
    **log: Any,
) -> tuple[Catalog, CountingStore]:
    """Return a client that has read nothing, and the store that counts its requests.

    Requests that the client makes side by side run in sequence here, and count as a single round.
    """
    store = kind(open_store(str(warehouse), options))
    catalog = Catalog(
        warehouse, options=options, log_options=LogOptions(in_parallel=store.side_by_side, **log)
    )
    engine.places(catalog).stores[engine.places(catalog).warehouse] = store
    return catalog, store


@contextmanager
def s3(folder: Path, **more: Any) -> Iterator[S3Server]:
    """Run versitygw; its bucket is `lake`."""
    with versitygw(folder / "s3", **more) as server, server.credentials():
        yield server


@contextmanager
def held_up(server: S3Server, held_ms: Sequence[float]) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Yield a catalog's options for the proxy, and cells that the end of the block fills."""
    address, counts = server.endpoint.removeprefix("http://"), dict[str, str]()
    before_s = _cpu_s_at(address)
    proxy = subprocess.Popen(
        [_proxy(), address, *map(str, held_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert proxy.stdout is not None
    try:
        yield {**server.options, "endpoint": proxy.stdout.readline().strip()}, counts
    finally:
        counts["CPU s of the server"] = f"{_cpu_s_at(address) - before_s:.1f}"
        counts["of the proxy, requests"] = proxy.communicate("")[0].strip()


@functools.cache
def _proxy() -> str:
    if shutil.which("go") is None:
        raise SystemExit("the slow S3 is a program in Go, as versitygw is: install Go")
    build_folder = tempfile.mkdtemp(prefix="lakelog-bench-")
    atexit.register(shutil.rmtree, build_folder)
    source = Path(__file__).with_name("slow_s3.go")
    subprocess.run(["go", "build", "-o", f"{build_folder}/slow_s3", str(source)], check=True)
    return f"{build_folder}/slow_s3"


def _cpu_s_at(address: str) -> float:
    """Return the processor seconds that the server at this address has used."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if address.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                return cpu_s_of(int(process.name))
    return 0.0


def litter(data: Path, files: int, *, of_a_write: int = 1000) -> None:
    """Make empty objects that no version has. Their names are those of writes that began long ago."""
    from lakelog.log import new_id

    for first in range(0, files, of_a_write):
        id = new_id()
        for number in range(min(of_a_write, files - first)):
            os.close(os.open(data / f"{1:020d}-{id}-{number:05d}.parquet", os.O_CREAT | os.O_WRONLY))
