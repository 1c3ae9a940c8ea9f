"""`lakelog serve` and `lakelog token`: a server for clients of Iceberg's REST catalog, and its log.

Rule: a server that other hosts reach has callers with tokens and rights, and its tokens do not travel in the open. It
must not know the answers.
"""

from lakelog.cli.server.command import COMMANDS
from lakelog.cli.server.log import ServerLog

__all__ = ["COMMANDS", "ServerLog"]
