"""Changes of a table's rows between versions, and tables as streams: read from commits and from files that exist.

Rule: what lies between two positions is the same whenever it is asked for.
It must not write to any log, and it knows no engine: it returns files to be read, and what each row of them means.
"""

from lakelog.catalog.changelog.change_stream import (
    ChangeStream,
)
from lakelog.catalog.changelog.changelog import (
    Asked,
    Changelog,
    asked_versions,
    changelog_of,
    changes_schema,
)
from lakelog.catalog.changelog.reading import (
    Changes,
)
from lakelog.catalog.changelog.stream_positions import (
    Limits,
)
from lakelog.catalog.changelog.stream_source import (
    Stream,
)
from lakelog.catalog.changelog.stream_versions import (
    Versions,
)

__all__ = [
    "Asked",
    "ChangeStream",
    "Changelog",
    "Changes",
    "Limits",
    "Stream",
    "Versions",
    "asked_versions",
    "changelog_of",
    "changes_schema",
]
