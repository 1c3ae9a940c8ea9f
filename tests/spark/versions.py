"""The Spark that runs the tests, and marks for tests of what only some Sparks do."""

from __future__ import annotations

import pyspark
import pytest

SPARK_4_3 = tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= (4, 3)
only_where_spark_computes = pytest.mark.skipif(
    not SPARK_4_3, reason="Spark computes the values of generated columns from 4.3 on"
)
