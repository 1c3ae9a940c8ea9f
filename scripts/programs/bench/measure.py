"""How scenarios measure: by turns, in separate processes, and by counts."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from lakelog.log import CountingStore, wait_for_background
from programs.bench.scenario import Row

T = TypeVar("T")
UNITS = {"s": 1.0, "ms": 1e3, "µs": 1e6}


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def turns(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    warm_up: int = 1,
    spent: Callable[[Callable[[], object]], float] = seconds,
) -> dict[str, list[float]]:
    """Run every contender once a round, and return what each has `spent`.

    Each round begins with another contender, so that a busy machine hits all of them alike. The first `warm_up` rounds
    are not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(warm_up + rounds):
        for name in rotated(list(contenders), number):
            value = spent(contenders[name])
            if number >= warm_up:
                times[name].append(value)
    return times


def rotated(names: Sequence[T], number: int) -> list[T]:
    """Return the names in rotation, so that each number puts another name first."""
    first = number % len(names)
    return [*names[first:], *names[:first]]


def beside(times: Mapping[str, Sequence[float]], base: str, unit: str = "s", **more: object) -> Iterator[Row]:
    """Yield a row for each contender: its times, and their ratios to the times of `base` in the same round."""
    for name, durations in times.items():
        ratios = [
            duration / base_duration for duration, base_duration in zip(durations, times[base], strict=True)
        ]
        yield {
            **more,
            "": name,
            unit: [duration * UNITS[unit] for duration in durations],
            f"of {base}": ratios,
        }


def within(spent: Sequence[float], unit: str = "ms") -> Row:
    """Return the median time, the time that 95 % are within, and the longest time."""
    by_length = sorted(duration * UNITS[unit] for duration in spent)
    late = by_length[int(len(by_length) * 0.95)]
    return {
        f"median {unit}": median(by_length),
        f"95 % within {unit}": late,
        f"longest {unit}": by_length[-1],
    }


def cost(
    work: Callable[[], object], *columns: str, store: CountingStore | None = None, times: int = 1
) -> dict[str, Any]:
    """Return these `columns` of the cost of `work`, which repeats an operation so many `times`.

    Work of background threads counts too, except for its seconds and rounds.
    """
    wait_for_background()
    if store is not None:
        store.reset()
    before_mb, cpu_s, wall_s = peak_mb(), time.process_time(), time.perf_counter()
    work()
    wall_s = time.perf_counter() - wall_s
    rounds = 0 if store is None else store.rounds
    wait_for_background()
    cpu_s = time.process_time() - cpu_s
    values: dict[str, Any] = {
        "s": wall_s / times,
        "ms": wall_s / times * 1e3,
        "CPU s": cpu_s / times,
        "CPU ms": cpu_s / times * 1e3,
        "peak MB": peak_mb() - before_mb,
    }
    if store is not None:
        of = {kind: count if times == 1 else count / times for kind, count in sorted(store.by_kind.items())}
        values |= {
            "requests": store.requests if times == 1 else store.requests / times,
            "rounds": rounds if times == 1 else None,
            "of which": ", ".join(f"{count:,.6g} {kind}" for kind, count in of.items()) or "–",
            "KB read": store.bytes_read / times / 1e3,
            "MB read": store.bytes_read / times / 1e6,
            "bytes read": store.bytes_read,
            "KB written": store.bytes_written / times / 1e3,
            "MB written": store.bytes_written / times / 1e6,
            "bytes written": store.bytes_written,
            "GETs": of.get("get", 0),
            "PUTs": of.get("put", 0) + of.get("put_if_absent", 0),
            "LISTs": of.get("list", 0),
        }
    return {column: values[column] for column in columns} if columns else values


def peak_mb(pid: int | str = "self") -> float:
    """Return the peak memory of a process. `getrusage` would not do, because it begins with the parent's peak."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def cpu_s_of(pid: int) -> float:
    """Return the processor seconds that another process has used."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(int(ticks) for ticks in times) / os.sysconf("SC_CLK_TCK")


def apart(work: Callable[..., T], *given: object) -> T:
    """Call a function in a process of its own.

    The process is not forked, because a forked process begins with its parent's memory.
    """
    return together(work, [given])[0]


def together(work: Callable[..., T], orders: Sequence[Sequence[object]]) -> list[T]:
    """Call a function in as many processes as there are orders. In it, `all_ready()` waits for all processes."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(orders))
    with ProcessPoolExecutor(len(orders), context, initializer=_begin, initargs=(barrier,)) as processes:
        return [answer.result() for answer in [processes.submit(_called, work, *order) for order in orders]]


_barrier: Barrier | None = None


def _begin(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _called(work: Callable[..., T], *order: object) -> T:
    """Return the result of `work`. If it fails, no process waits for this process."""
    try:
        return work(*order)
    except BaseException:
        if _barrier is not None:
            _barrier.abort()
        raise


def all_ready() -> None:
    assert _barrier is not None, "called in a process of together()"
    _barrier.wait()
