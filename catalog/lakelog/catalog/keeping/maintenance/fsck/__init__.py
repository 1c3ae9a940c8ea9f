"""Checking a warehouse offline: logs, names, transactions, data files. `check_warehouse` has the promises."""

from lakelog.catalog.keeping.maintenance.fsck.check import check_warehouse
from lakelog.catalog.keeping.maintenance.fsck.data_checks import Checksum
from lakelog.log.checks.findings import Finding, Findings, Severity

__all__ = ["Checksum", "Finding", "Findings", "Severity", "check_warehouse"]
