"""Pictures that are made up: large ones, and ones with hostile texts."""

from __future__ import annotations

import hashlib
from typing import Any

from lakelog.catalog.looking.pictures.model import (
    FORMAT,
    ChangePicture,
    ColumnPicture,
    DefinitionPicture,
    LanePicture,
    LogPicture,
    Picture,
    WriterPicture,
)


def change(version: int, **said: Any) -> ChangePicture:
    """Return an append as it mostly looks, with an id of its own."""
    given: dict[str, Any] = {
        "version": version,
        "time_us": 1_767_225_600_000_000 + version * 61_123_457 + version * version % 7919,
        "operation": "append",
        "text": f"append: +{version % 977 * 31:,} rows in {version % 3 + 1} files",
        "writer": version % 5,
        "commit_id": hashlib.sha256(str(version).encode()).hexdigest()[:26],
        "added_rows": version % 977 * 31,
        "added_files": version % 3 + 1,
        "added_bytes": version * 7919 % 100_000_007,
        "base": version - 3 if version % 10 == 0 and version > 3 else None,
    }
    return ChangePicture(**given | said)


def picture(changes: list[ChangePicture], **said: Any) -> Picture:
    given: dict[str, Any] = {
        "format": FORMAT,
        "kind": "table",
        "name": "shop.orders",
        "location": "/warehouse/t",
        "made_us": 1_800_000_000_000_000,
        "lakelog": "0.1.0",
        "logs": (
            LogPicture(kind="table", name="shop.orders", location="/warehouse/t", version=len(changes)),
        ),
        "writers": tuple(
            WriterPicture(user=f"user{number}", engine="spark", host=f"host{number}") for number in range(5)
        ),
        "lanes": (LanePicture(name="main", kind="main", column=0),),
        "changes": tuple(changes),
        "definitions": (
            DefinitionPicture(version=1, columns=(ColumnPicture(id=1, name="id", type="long"),)),
        ),
    }
    return Picture(**given | said)


def many(count: int) -> Picture:
    return picture([change(version) for version in range(count, 0, -1)])
