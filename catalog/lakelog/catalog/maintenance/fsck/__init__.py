"""Checking a warehouse offline: logs, names, transactions, data files. See `check` for what it promises."""

from lakelog.catalog.maintenance.fsck.check import check
from lakelog.log.findings import Finding, Findings, Severity

__all__ = ["Finding", "Findings", "Severity", "check"]
