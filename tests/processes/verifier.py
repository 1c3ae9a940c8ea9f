"""After a run: a fresh process that asks the store what is true, and holds it against the answers that writers had.

    python -m tests.processes.verifier <world.json>

First it does what the next writer would do, who finds the warehouse as the killed ones left it. Then it checks that
what was acknowledged happened once, what failed never, and what is unknown at most once; that a retry settles it;
and that every log, table and file is exactly what the requests amount to.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S
from tests.processes import chains, models, moves
from tests.processes.journal import DONE, FAILED, NOTHING, Asked, Journals
from tests.processes.work import NotLoaded, perform, repeatable
from tests.processes.world import World, load_world
from tests.processes.writer import classify

from lakelog.log import open_store
from lakelog.log.stores import ENDPOINT_OPTIONS

WRONG_MAX = 50
FSCK_CLEAN, FSCK_REPAIRABLE = 0, 3
DERIVED = ("hint-", "snapshot-")


class Verifier:
    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = random.Random(f"{world.seed} verifier")
        self.wrong: list[str] = []
        self.figures: Counter[str] = Counter()
        journals = Journals(world.journals)
        journals.read_on()
        self.asked = journals.asked

    def verify(self) -> None:
        self._fsck("before", benign=(*DERIVED, "transaction-undecided", "drop-unfinished"))
        self._let_the_next_writer_work()
        self._retry()
        self.figures["restores of dropped logs settled"] = chains.settle_restores(
            self.world.catalog("verifier")
        )
        # Commits stay for ever: what happened too often, or should not have, still shows after the retries.
        checked_outcomes = self._check_outcomes()
        for key, value in Counter(a.outcome for a in self.asked.values()).items():
            self.figures[f"requests {key}"] = value
        self.figures["requests retried"] = sum(a.retries for a in self.asked.values())
        self.figures["commits verified"] = checked_outcomes.commits
        self.figures["rows verified"] = checked_outcomes.rows
        self.figures["data files verified"] = checked_outcomes.files
        # A writer that dies before it wrote the snapshot that was its turn leaves none: it is derived, and not missed.
        if self._fsck("after", "--deep", benign=DERIVED):
            self._fsck("after its repair", "--repair", benign=("there must be nothing",))

    def _let_the_next_writer_work(self) -> None:
        """Go through every name, and commit to every log that can be reached: nothing may stand in the way."""
        catalog = self.world.catalog("verifier")
        pending_texts: list[tuple[str, ...]] = [()]
        while pending_texts:
            namespace = pending_texts.pop()
            start_time = time.monotonic()
            catalog.alter_namespace(namespace, set={"verified": "yes"})
            for name in catalog.list_tables(namespace):
                if catalog.table_exists(name):
                    change = {"change": "set-property", "key": "verified", "value": "yes"}
                    catalog.load_table(name).alter([change])
                    self.figures["tables the next writer changed"] += 1
            if (took := time.monotonic() - start_time) > PATIENCE_S:
                self.wrong.append(f"the next writer needed {took:.1f} s for {namespace}")
            pending_texts += [n for n in catalog.list_namespaces(namespace) if catalog.namespace_exists(n)]

    def _check_outcomes(self) -> models.Checked:
        warehouse = chains.read(open_store(self.world.warehouse, self.world.options))
        self.figures.update(warehouse.counts)
        wrong = list(warehouse.wrong)
        wrong += chains.lone_transactions(warehouse)
        requests = models.Requests(self.asked.values())
        checked = models.Checked(wrong=wrong)
        catalog = self.world.catalog()
        linked_namespaces = models.check_namespaces(warehouse.chains, requests, checked)
        self._check_names(warehouse.chains, linked_namespaces, checked)
        for chain in warehouse.chains.values():
            if chain.is_table:
                models.TableModel(catalog, chain, self.rng, checked).follow(requests)
        self.figures["transactions in order"] = models.check_moves(checked, self.asked)
        for kind in moves.TABLES:
            if label := moves.wrong_in(kind, dict(moves.found_in(catalog, kind))):
                checked.wrong.append(label)
        for request in self.asked.values():
            self._check_outcome(request, checked)
        self.wrong += checked.wrong
        self.figures["temporary files left behind"] = _left_behind(self.world)
        return checked

    def _check_outcome(self, asked: Asked, checked: models.Checked) -> None:
        happened_texts = checked.happened.get(asked.key, [])
        by_log = Counter(where.partition(" of ")[2] for where in happened_texts)
        label = f"{asked.key} {asked.request['op']} of {asked.request['table']} ({', '.join(asked.answers)})"
        if any(count > 1 for count in by_log.values()):
            checked.wrong.append(f"{label} happened more than once: {happened_texts}")
        if asked.outcome == DONE and not happened_texts:
            checked.wrong.append(f"{label} was acknowledged, and is nowhere")
        if asked.outcome in (FAILED, NOTHING) and happened_texts:
            checked.wrong.append(
                f"{label} was said not to have happened, but see {happened_texts}: {asked.errors}"
            )

    def _check_names(
        self, found: dict[str, chains.Chain], linked: models.Linked, checked: models.Checked
    ) -> None:
        """Every name leads to a log that is there, and what once had a name is dropped or has exactly one now."""
        leading: dict[str, list[str]] = {}
        for (namespace, _, name), (id, location) in linked.now.items():
            leading.setdefault(id, []).append(f"{namespace}.{name}")
            chain = found.get(location)
            if chain is None or chain.log_id != id:
                checked.wrong.append(f"{namespace}.{name} leads to {location}, where the log {id} is not")
            elif chain.sealed:
                checked.wrong.append(f"{namespace}.{name} leads to {location}, which was dropped")
        for id, names in leading.items():
            if len(names) > 1:
                checked.wrong.append(f"{id} has several names: {names}")
        for chain in found.values():
            if chain.prefix and not chain.sealed and chain.log_id in linked.ever - leading.keys():
                checked.wrong.append(f"the log {chain.prefix} was not dropped, but no name leads to it")

    def _retry(self) -> None:
        """Retry everything doubtful from here: what comes back is certain then."""
        catalog = self.world.catalog("verifier")
        for request in self.asked.values():
            if not request.doubtful or not repeatable(request.request):
                continue
            try:
                answer = perform(catalog, request.request)
            except NotLoaded:
                continue  # its table is gone
            except Exception as error:
                answer = classify(error, again=True)
                request.errors.append(f"{type(error).__name__}: {error}")
            request.answers.append(answer)
            request.retries += 1
            self.figures[f"doubtful requests that were {answer} when retried"] += 1

    def _fsck(self, when: str, *options: str, benign: tuple[str, ...]) -> bool:
        """Let lakelog's own check look at the warehouse, as a user would; return whether it found something to repair.

        What is no more than a note, or begins with one of `benign`, is what killed writers may leave behind.
        """
        place = [part for key, value in self.world.options.items() for part in _as_option(key, value)]
        command = [
            sys.executable,
            "-m",
            "lakelog.cli",
            "fsck",
            "--json",
            self.world.warehouse,
            *place,
            *options,
        ]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        (Path(self.world.folder) / f"fsck {when}.json").write_text(process.stdout + process.stderr)
        if process.returncode not in (FSCK_CLEAN, FSCK_REPAIRABLE):
            self.wrong.append(
                f"fsck {when} ended with {process.returncode}: {(process.stdout + process.stderr)[-2000:]}"
            )
            return False
        for finding in json.loads(process.stdout)["findings"]:
            self.figures[f"fsck {when}: {finding['severity']} {finding['kind']}"] += 1
            if finding["severity"] != "note" and not finding["kind"].startswith(benign):
                self.wrong.append(f"fsck {when}: {finding}")
        return process.returncode == FSCK_REPAIRABLE


def _as_option(key: str, value: str) -> list[str]:
    if key == "fsync":
        return []
    # The command has the servers of all clouds by one option.
    name = "endpoint" if key in ENDPOINT_OPTIONS else key
    return [f"--{name.replace('_', '-')}"] + ([] if value == "true" else [value])


def _left_behind(world: World) -> int:
    if "://" in world.warehouse:
        return 0
    return sum(name.startswith(".lakelog-tmp-") for _, _, names in os.walk(world.warehouse) for name in names)


def main() -> int:
    world = load_world(sys.argv[1])
    verifier = Verifier(world)
    verifier.verify()
    report: dict[str, Any] = {"wrong": verifier.wrong[:WRONG_MAX], "figures": dict(verifier.figures)}
    (Path(world.folder) / "verified.json").write_text(json.dumps(report, indent=1))
    return 1 if verifier.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
