"""Changes of a table's rows between versions, and tables as streams: read from commits and from files that exist.

Rule: the changes between two positions are the same at every request.
It must not write to any log, and it knows no engine: it returns files to be read, and what each of their rows means.
"""

from lakelog.catalog.looking.changelog.change_stream import (
    ChangeStream,
)
from lakelog.catalog.looking.changelog.changelog import (
    Asked,
    Changelog,
    asked_versions,
    changelog_of,
    changes_schema,
)
from lakelog.catalog.looking.changelog.reading import (
    Changes,
)
from lakelog.catalog.looking.changelog.stream_positions import (
    Limits,
)
from lakelog.catalog.looking.changelog.stream_source import (
    Stream,
)
from lakelog.catalog.looking.changelog.stream_versions import (
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
