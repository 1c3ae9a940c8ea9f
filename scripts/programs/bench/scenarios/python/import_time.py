"""How long imports of lakelog take beside `import pyarrow`, and the command. Each runs in its own process, by turns.

Times are processor times. The ratio is between the best times, because other work on the machine only makes a process
slower. The goal is that `import lakelog.catalog` takes at most 1.35 times as long as `import pyarrow`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Annotated

from lakelog.catalog import Catalog
from programs.bench.measure import seconds, turns
from programs.bench.places import folder
from programs.bench.scenario import Row

COUNT = "; import sys; names = list(sys.modules); print(sum(n.split('.')[0] == 'lakelog' for n in names), len(names))"


def measure(rounds: Annotated[int, "of which the best counts"] = 20) -> Iterator[Row]:
    with folder() as place:
        Catalog(place).create_namespace("a")
        run = "from lakelog.cli.main import run; run({})"
        programs = {
            "import pyarrow": "import pyarrow",
            "import lakelog.log": "import lakelog.log",
            "import lakelog.catalog": "import lakelog.catalog",
            "lakelog --help": run.format(["--help"]),
            "lakelog ls": run.format(["ls", "--warehouse", str(place)]),
        }
        modules = {name: _run(code + COUNT).split()[-2:] for name, code in programs.items()}
        runs = {name: partial(_run, code) for name, code in programs.items()}
        times = turns(runs, rounds, spent=partial(seconds, clock=_children_s))
    best = min(times["import pyarrow"])
    for name, durations in times.items():
        yield {
            "": name,
            "best CPU ms": min(durations) * 1e3,
            "of import pyarrow": min(durations) / best,
            "all, CPU ms": [duration * 1e3 for duration in durations],
            "modules of lakelog": int(modules[name][0]),
            "modules": int(modules[name][1]),
        }


def _run(code: str) -> str:
    outcome = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return outcome.stdout


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
