"""Iceberg's own compatibility kit for REST catalogs, run against a server. A failure is on the page with its reason.

The kit is a suite of JUnit, which Maven fetches. docs/design/iceberg-commits.md has the table of its failures.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.integration.iceberg.serving import served

from lakelog.catalog import Catalog
from lakelog.testing import maven

ICEBERG = "1.11.0"
HADOOP = "3.4.1"
PACKAGES = [
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG}:tests",
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}:tests",
    f"org.apache.iceberg:iceberg-api:{ICEBERG}:tests",
    f"org.apache.hadoop:hadoop-client-api:{HADOOP}",
    f"org.apache.hadoop:hadoop-client-runtime:{HADOOP}",
    "org.junit.platform:junit-platform-console-standalone:1.11.4",
    "org.assertj:assertj-core:3.27.3",
    "org.mockito:mockito-core:5.14.2",
    "org.awaitility:awaitility:4.2.2",
    "org.slf4j:slf4j-simple:2.0.17",
    "org.eclipse.jetty:jetty-servlet:11.0.26",
    "org.xerial:sqlite-jdbc:3.49.1.0",
]
CLASSES = ("RESTCompatibilityKitCatalogTests", "RESTCompatibilityKitViewCatalogTests")
PAGE = Path(__file__).parents[3] / "docs/design/iceberg-commits.md"

FILES = "data files that do not exist, in the table's place or outside of it"
PLACES = "tables outside of the warehouse, or moved to another place"
DIALECTS = "views in another dialect than Spark's, or in several"
VIEWS = "former versions, version numbers and places of views"
REGISTRATION = "registration of a metadata file"
OTHERS = "version 1 of the format, a partition field, lists of metadata files, an exact message"
FAILURES = {
    FILES: """
        dropAfterRenameDoesntCorruptTable testAppend testCatalogWithCustomMetricsReporter
        testConcurrentAppendEmptyTable testConcurrentAppendNonEmptyTable
        testConcurrentReplaceTransactionPartitionSpec testConcurrentReplaceTransactionPartitionSpec2
        testConcurrentReplaceTransactionPartitionSpecConflict testConcurrentReplaceTransactionSchema
        testConcurrentReplaceTransactionSchema2 testConcurrentReplaceTransactionSchemaConflict
        testConcurrentReplaceTransactionSortOrder testConcurrentReplaceTransactionSortOrderConflict
        testConcurrentReplaceTransactions testCreateOrReplaceReplaceTransactionReplace
        testCreateOrReplaceTransactionCreate testCreateTransaction testRegisterTable
        testRemoveUnusedSchemas[1] testRemoveUnusedSchemas[2] testRemoveUnusedSpec[1] testRemoveUnusedSpec[2]
        testReplaceTableKeepsSnapshotLog testReplaceTransaction
    """,
    PLACES: """
        testCompleteCreateOrReplaceTransactionCreate testCompleteCreateOrReplaceTransactionReplace
        testCompleteCreateTable testCompleteCreateTransaction testCompleteCreateTransactionMultipleSchemas
        testCompleteCreateTransactionV2 testCompleteReplaceTransaction testCreateTableWithDefaultColumnValue
        testLoadTable
    """,
    DIALECTS: """
        completeCreateView concurrentReplaceViewVersion createAndReplaceViewWithLocation
        createOrReplaceView[1] createOrReplaceView[2] createViewConflict createViewErrorCases
        replaceViewConflict replaceViewErrorCases replaceViewVersion replaceViewVersionConflict
        replaceViewVersionErrorCases testSqlForCaseInsensitive testSqlForMultipleDialects updateViewLocation
        updateViewLocationConflict updateViewPropertiesConflict
    """,
    VIEWS: """
        basicCreateView createViewWithCustomMetadataLocation renameViewUsingDifferentNamespace
        replaceViewVersionByUpdatingSQLForDialect updateViewProperties
    """,
    REGISTRATION: """
        registerExistingView registerTableThatAlreadyExistsAsView registerView
        registerViewThatAlreadyExistsAsTable testRegisterExistingTable
    """,
    OTHERS: """
        createTableTransaction[1] replaceTableTransaction[1] testListNonExistingNamespace
        testLoadTableWithMissingMetadataFile testMetadataFileLocationsRemovalAfterCommit
        testUpdateTableAssignmentSpecConflict
    """,
}
"""The tests that fail, by the reason on the page."""


@pytest.mark.slow
def test_the_kit_passes_except_for_the_failures_on_the_page(tmp_path: Path) -> None:
    """It takes one to three minutes."""
    jars = maven.jars(f"iceberg-compatibility-kit-{ICEBERG}", PACKAGES)
    warehouse = str(tmp_path / "w")
    Catalog(warehouse).create_namespace("start")
    with served(warehouse, writes=True) as url:
        command = ["java", "-Xmx700m", "-Drck.local=false", "-Drck.requires-namespace-create=true"]
        command += [
            "-cp",
            os.pathsep.join(map(str, jars)),
            "org.junit.platform.console.ConsoleLauncher",
            "execute",
        ]
        command += [f"-c=org.apache.iceberg.rest.{name}" for name in CLASSES]
        command += [f"--reports-dir={tmp_path / 'reports'}", "--details=none"]
        subprocess.run(command, env={**os.environ, "CATALOG_URI": url}, capture_output=True, check=False)
    outcomes = _outcomes(tmp_path / "reports")
    failed_names = {name for name, outcome in outcomes.items() if outcome == "failed"}
    assert failed_names == {name for names in FAILURES.values() for name in names.split()}
    assert Counter(outcomes.values()) == {"passed": 79, "failed": 66, "did not apply": 12}


def test_the_page_has_the_table_of_the_kit() -> None:
    rows = [f"| {len(names.split())} | {reason} |" for reason, names in FAILURES.items()]
    table = "\n".join(["| tests | reason |", "|---|---|", *rows])
    assert table in PAGE.read_text(encoding="utf-8"), f"the table is now:\n{table}"


def _outcomes(reports: Path) -> dict[str, str]:
    """Return the outcome of each test by its name. Repetitions of a test have their number in brackets."""
    outcomes: dict[str, str] = {}
    for report in reports.glob("*.xml"):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            name = re.sub(r"\(.*\)", "", case.attrib["name"])
            tags = {part.tag for part in case}
            outcomes[name] = (
                "failed"
                if tags & {"failure", "error"}
                else "did not apply"
                if "skipped" in tags
                else "passed"
            )
    return outcomes
