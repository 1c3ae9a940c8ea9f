"""Types of stored objects, made known to their decoder when they are defined.

msgspec looks into a type when it is first decoded, and two threads that do so at once crash the process.
"""

from __future__ import annotations

from typing import Any

import msgspec


def ready(*types: Any) -> None:
    """Have the decoder look into `types` now: modules are imported by one thread only."""
    for each in types:
        msgspec.json.Decoder(each)
