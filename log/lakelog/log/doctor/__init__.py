"""Proving a store before it is used: what lakelog needs of one, tried on the store itself.

Rule: a check says what was seen; what could not be found out is unknown, never good. All objects are below one folder
of the doctor's own, and are removed. It must not know logs: only stores, and what `store` promises of them.
"""

from lakelog.log.doctor.examine import examine
from lakelog.log.doctor.report import Check, Report, Verdict

__all__ = ["Check", "Report", "Verdict", "examine"]
