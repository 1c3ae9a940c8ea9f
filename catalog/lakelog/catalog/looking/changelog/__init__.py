"""Changes of a table's rows between versions, and tables as streams, read from commits and existing files.

Rule: the changes between two positions are the same at every request. It must not write to any log, and it
knows no engine: it returns the files to read, and the meaning of their rows.
"""

from lakelog.catalog.looking.changelog.change_stream import ChangeStream
from lakelog.catalog.looking.changelog.changelog import (
    Changelog,
    ChangeRange,
    asked_versions,
    changelog_of,
    changes_schema,
)
from lakelog.catalog.looking.changelog.reading import Changes
from lakelog.catalog.looking.changelog.stream_positions import StreamLimits
from lakelog.catalog.looking.changelog.stream_source import TableStream
from lakelog.catalog.looking.changelog.stream_versions import StreamVersions

__all__ = [
    "ChangeRange",
    "ChangeStream",
    "Changelog",
    "Changes",
    "StreamLimits",
    "TableStream",
    "StreamVersions",
    "asked_versions",
    "changelog_of",
    "changes_schema",
]
