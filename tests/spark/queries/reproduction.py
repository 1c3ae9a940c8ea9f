"""A difference made small, and written as a program that shows it and needs nothing of this folder."""

from __future__ import annotations

import itertools
import pprint
import re
import time
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from tests.spark.queries.comparing import difference
from tests.spark.queries.lives import Life
from tests.spark.queries.running import Found
from tests.spark.queries.selects import Query
from tests.spark.queries.shrinking import PATIENCE_S, TRIES, renumbered, shorter, shrunk, tables_of
from tests.spark.queries.world import World

_PROGRAM = '''"""{what}

Found by {command}. Ended by: {ended}.
"""

import tempfile

from pyspark.sql import SparkSession

from lakelog.catalog import Catalog
from lakelog.spark import configure

folder = tempfile.mkdtemp()
builder = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
spark = configure(builder, folder + "/warehouse").getOrCreate()
spark.sparkContext.setLogLevel("OFF")


def sql(text):
    try:
        spark.sql(text.replace("{{folder}}", folder)).collect()
    except Exception as error:
        print(text, str(error).splitlines()[0])


def append(table, rows):
    Catalog(folder + "/warehouse").load_table(table).append(spark.sql(rows).toArrow())


def parquet(place, rows, statistics):
    writer = spark.sql(rows).coalesce(1).write
    writer = writer.option("parquet.column.statistics.enabled", str(statistics).lower())
    writer.parquet(place.replace("{{folder}}", folder))


{script}

def show(text, conf):
    print(text)
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        spark.sql(text).show(100, truncate=False)
    except Exception as error:
        print(str(error).splitlines()[0])


show({lake!r}, {lake_conf})
show({plain!r}, {plain_conf})
'''


@dataclass
class Smaller:
    """Worlds that are made to find out whether a difference is still there with less in them."""

    world: World
    found: Found
    catalog: str
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def differs(self, world: World, query: Query) -> bool:
        label = difference(world.spark, world.lake(self.catalog), world.plain(), query)[0]
        return _form(label) == _form(self.found.what)

    def program(self) -> str:
        """Return the text of a program that shows the difference."""
        query = shrunk(self.found.query, lambda each: self.differs(self.world, each))
        names = {ref.name for ref in tables_of(query)}
        lives = [life for name, life in self.world.lives.items() if name in names]
        world, tries = self._built(lives), TRIES // 2
        query_there = renumbered(query, _versions(self.world, world, lives, lives))
        if not self.differs(world, query_there):
            return self._written(self.world, query)
        smaller, ends = True, time.monotonic() + PATIENCE_S
        while smaller and tries > 0:
            smaller = False
            for candidate in shorter(lives):
                tries -= 1
                new_pair = self._tried(world, query_there, lives, candidate)
                if new_pair is not None:
                    world.drop()
                    (world, query_there), lives, smaller = new_pair, candidate, True
                    break
                if tries <= 0 or time.monotonic() > ends:
                    tries = 0
                    break
        query = shrunk(query_there, lambda each: self.differs(world, each), TRIES // 3)
        text = self._written(world, query)
        world.drop()
        return text

    def _built(self, lives: list[Life]) -> World:
        name = f"{self.world.name}_{self.found.number}_{next(self.numbers)}"
        old = self.world
        world = World(old.spark, old.catalog, old.warehouse, old.folder / name, name, old.conf)
        world.build(lives)
        return world

    def _tried(
        self, world: World, query: Query, lives: list[Life], less: list[Life]
    ) -> tuple[World, Query] | None:
        try:
            new_world = self._built(less)
        except (PySparkException, Py4JJavaError):
            return None
        other_query = renumbered(query, _versions(world, new_world, lives, less))
        if {ref for ref in tables_of(other_query)} <= new_world.states.keys() and self.differs(
            new_world, other_query
        ):
            return new_world, other_query
        new_world.drop()
        return None

    def _written(self, world: World, query: Query) -> str:
        def named_text(text: str) -> str:
            return re.sub(rf"\b{world.catalog}\.", "lake.", text)

        return _PROGRAM.format(
            what=self.found.what.replace('"""', "'"), command=self.found.command,
            ended=", ".join(self.found.ended_by) or "no switch",
            script="\n".join(world.script), lake_conf=pprint.pformat(dict(world.conf)),
            plain_conf=pprint.pformat(dict(world.conf + world.plain().conf)),
            lake=named_text(world.lake().text(query.sql)), plain=named_text(world.plain().text(query.sql)),
        )  # fmt: skip


def _form(what: str) -> str:
    return what if what.startswith("errors") else what.partition(":")[0]


def _versions(old: World, new: World, before: list[Life], after: list[Life]) -> dict:
    """Return what the kept versions of one world are in another one; kept steps stay in their order."""
    found = {}
    for life, other_life in zip(before, after, strict=True):
        for place, other_number in zip(sorted(life.kept), sorted(other_life.kept), strict=True):
            if (life.name, place) in old.kept and (other_life.name, other_number) in new.kept:
                found[old.kept[life.name, place]] = new.kept[other_life.name, other_number]
    return found
