"""A client of one release among others: changes a warehouse at random, and prints each change that it knows happened.

`python client.py WAREHOUSE NAME SEED STEPS`. It uses only the Python interface that 0.1.0 promises, so that every
release can run it. Each row that it appends has an id of its own: NAME and a number.
"""

import json
import random
import sys

import pyarrow as pa

import lakelog.catalog
from lakelog.catalog import Catalog, ConflictError, LakelogError, NotFound

COLUMNS = pa.schema([("id", pa.string()), ("n", pa.int64())])


def main(warehouse: str, name: str, seed: str, steps: str) -> None:
    chance = random.Random(f"{name} {seed}")
    catalog = Catalog(warehouse)
    say(uses=lakelog.catalog.__file__)
    table_name, own_ids, number = "shop.orders", list[str](), 0
    for step in range(int(steps)):
        table = catalog.load_table(table_name)
        kind = chance.choice(KINDS)
        ids = [f"{name}-{number + index}" for index in range(chance.randint(1, 20))]
        number += len(ids)
        try:
            match kind:
                case "append":
                    rows = pa.table({"id": ids, "n": [step] * len(ids)}, schema=COLUMNS)
                    table.append(rows)
                    say(appended=ids)
                    own_ids += ids
                case "delete" if own_ids:
                    some_own_ids = chance.sample(own_ids, min(3, len(own_ids)))
                    table.delete([("id", "in", some_own_ids)])
                    say(deleted=some_own_ids)
                    own_ids = [id for id in own_ids if id not in some_own_ids]
                case "update" if own_ids:
                    table.update({"n": -1}, [("id", "in", chance.sample(own_ids, min(3, len(own_ids))))])
                case "tag":
                    table.create_tag(f"{name}-{step}")
                case "own table":
                    own = catalog.create_table(f"shop.{name}_{step}", COLUMNS)
                    own.append(pa.table({"id": ids, "n": [step] * len(ids)}, schema=COLUMNS))
                    catalog.drop_table(f"shop.{name}_{step}")
                    catalog.undrop_table(f"shop.{name}_{step}")
                    say(own=f"shop.{name}_{step}", rows=len(ids))
                case "column":
                    table.add_column(f"{name}_{step}", pa.int64(), default=7)
                case "transaction":
                    with catalog.transaction() as transaction:
                        transaction.load_table(table_name).append(
                            pa.table({"id": ids, "n": [step] * len(ids)}, schema=COLUMNS)
                        )
                        transaction.create_namespace(f"{name}_{step}")
                    say(appended=ids)
                    own_ids += ids
                case "compact":
                    table.compact()
                case "expire":
                    catalog.expire(table_name, retain_last=10, dry_run=False)
                case "read":
                    read = table.refresh().to_arrow()
                    assert read.num_rows == len(set(read["id"].to_pylist())), "a row is there twice"
        except ConflictError:
            pass
        except LakelogError as error:
            if kind == "tag" and isinstance(error, NotFound):
                continue  # another client has expired the version that was read before
            say(step=kind, error=f"{type(error).__name__}: {error}")
    say(done=True)


KINDS = [
    *["append"] * 5,
    *["read"] * 2,
    *["transaction"] * 2,
    "delete",
    "update",
    "tag",
    "own table",
    "column",
    "compact",
    "expire",
]


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
