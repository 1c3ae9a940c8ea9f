"""The ends of files along a curve: at borders of its cells, so that their rows lie in separate boxes.

The places of a cell share all but their last bits. On Hilbert's curve, these are a square, half a square, or
so. A file between two borders of cells as large as itself has its rows in a box into which no other such file
reaches. A file that ends anywhere has a box that is larger than its stretch. Then 1.3 or 1.4 files of a run
lie over a point, instead of 1.
"""

from __future__ import annotations

import numpy as np

from lakelog.catalog.core.schema.curve import Ints

FILE_LEAST, FILE_MOST = 0.75, 1.5
"""A file ends at a border from the first of these shares of its target size on, and at the second always."""


def border(places: Ints, begin: int, end: int, origin: int) -> int | None:
    """Return the number of the first row that begins a cell as large as the stretch from `origin` to there.

    Rows count from `begin`, at least 1, to below `end`; None if there is none. `places` go up.
    """
    if begin >= end:
        return None
    range_places = places[begin:end]
    changed_bits, reach = places[begin - 1 : end - 1] ^ range_places, range_places - origin
    # Whether the highest bit that changes is not below the highest bit of the stretch's length.
    is_border = (changed_bits > 0) & ~((changed_bits < reach) & (changed_bits < (changed_bits ^ reach)))
    borders = np.flatnonzero(is_border)
    return begin + int(borders[0]) if len(borders) else None
