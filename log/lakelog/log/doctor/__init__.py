"""Testing a store before it is used: lakelog's needs of a store, tried on the store itself.

Rule: a check reports observations; a result that could not be determined is unknown, never good. All objects
are below the doctor's own folder, and are removed. It must not know logs, only stores and the promises of
`store`.
"""

from lakelog.log.doctor.examine import examine
from lakelog.log.doctor.report import CheckVerdict, DoctorReport, StoreCheck

__all__ = ["StoreCheck", "DoctorReport", "CheckVerdict", "examine"]
