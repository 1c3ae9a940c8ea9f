"""Writes the objects of a golden warehouse, for the programs that make one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def write_objects(objects: Mapping[str, bytes]) -> None:
    """Write objects by their keys into the folder that the command line names."""
    for key, data in objects.items():
        path = Path(sys.argv[1], key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
