"""`lakelog ui`: the pages of `lakelog view`, served live to a browser on this computer, with SQL beside them.

Rule: it only reads, and has no state beside its memory. It answers only a request with the address's token. It must
not know the drawing of pages.
"""

from lakelog.cli.ui.command import COMMANDS

__all__ = ["COMMANDS"]
