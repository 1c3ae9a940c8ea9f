"""A cleaner, while others write: it expires tables, deletes what no client can reach, and purges dropped things.

It is killed as writers are. Its ages are seconds, so that writes under way do fail over it, which loses nothing.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import time

from tests.processes import moves
from tests.processes.world import begin, shared_tables

from lakelog.catalog import Catalog
from lakelog.log.errors import FormatError, LakelogError

WRITES_S, DROPPED_S, VERSIONS_S = 2.0, 3.0, 5.0
PAUSE_MAX_S = 1.0


def run(world_file: str, name: str, incarnation: int) -> None:
    """Be incarnation `incarnation` of a cleaner. Never returns."""
    world = begin(world_file, name)
    rng = random.Random(f"{world.seed} {name}.{incarnation}")
    catalog = world.catalog(name)
    while True:
        try:
            clean(catalog, rng)
        except FormatError:
            raise
        except LakelogError as error:
            print(f"{name}.{incarnation}: {error!r}", flush=True)
        time.sleep(rng.uniform(0.0, PAUSE_MAX_S))


def clean(catalog: Catalog, rng: random.Random) -> None:
    """Do one thing that a careful user would do once a day."""
    if rng.random() < 0.5:
        places = catalog.vacuum(
            older_than=dt.timedelta(seconds=WRITES_S),
            dropped_older_than=dt.timedelta(seconds=DROPPED_S),
            dry_run=False,
        )
        print(f"vacuumed {sum(place.files for place in places)} files of {len(places)} places", flush=True)
        return
    several = [f"{kind}.{letter}" for kind, letters in moves.TABLES.items() for letter in letters]
    name = rng.choice([*several, *shared_tables(catalog)])
    report = catalog.expire(name, older_than=dt.timedelta(seconds=VERSIONS_S), dry_run=False)
    print(f"expired {sum(one.commits for one in report)} commits of {name}", flush=True)


def commits_expired(said: str) -> int:
    """How many commits became tombstones, by what a cleaner said."""
    return sum(int(commits) for commits in re.findall(r"^expired (\d+) commits", said, re.MULTILINE))
