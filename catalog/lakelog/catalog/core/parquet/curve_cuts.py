"""Where files along a curve end: at borders of its cells, so that their rows lie in boxes that do not overlap.

The places of a cell share all but their last bits: on Hilbert's curve, these are a square, half of one, or so. A file
from one border to another one of cells as large as it has its rows in a box into which no other such file reaches. A
file that ends anywhere has a box that is larger than its stretch: then 1.3 or 1.4 files of one run lie over a point,
and not one.
"""

from __future__ import annotations

import numpy as np

from lakelog.catalog.core.schema import Ints

FILE_LEAST, FILE_MOST = 0.75, 1.5
"""A file ends at a border from the first of these shares of its target size on, and at the second one in any case."""


def border(places: Ints, begin: int, end: int, origin: int) -> int | None:
    """Return the first number from `begin` on, at least 1 and below `end`, of a row with which a cell begins that is as
    large as the stretch from `origin` to there; None where there is none. `places` go up."""
    if begin >= end:
        return None
    here = places[begin:end]
    changed, reach = places[begin - 1 : end - 1] ^ here, here - origin
    # Whether the highest bit that changes is not below the highest one of the stretch's length.
    is_border = (changed > 0) & ~((changed < reach) & (changed < (changed ^ reach)))
    found = np.flatnonzero(is_border)
    return begin + int(found[0]) if len(found) else None
