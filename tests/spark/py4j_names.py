"""Names of Java that are looked up once.

To spell `jvm.org.apache.spark.X`, py4j asks Java for a class called `org`, then for one called `org.apache`, and so on,
which Java looks for in some 300 jars. PySpark spells dozens of such names for each error that it turns into one of its
own, which was a seventh of what the tests cost Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView


def remember_names() -> None:
    """Keep packages and classes where they were found: they hold no state, and none goes away."""
    for kind in (JVMView, JavaPackage):
        if not hasattr(kind.__getattr__, "looks_up"):
            kind.__getattr__ = _remembering(kind.__getattr__)


def _remembering(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def found(self: Any, name: str) -> Any:
        known = self.__dict__.setdefault("_found_names", {})
        if name not in known:
            value = look_up(self, name)
            # A class that is not there is taken for a package, and may come with a jar or an import.
            if not isinstance(value, JavaClass) and not (isinstance(value, JavaPackage) and name.islower()):
                return value
            known[name] = value
        return known[name]

    found.looks_up = look_up  # type: ignore[attr-defined]
    return found
