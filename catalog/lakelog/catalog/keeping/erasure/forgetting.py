"""Forgetting rows: the order of the work, over a table, its clones, and the dropped tables that had its name.

Clones come first, so that their source need not keep files for them. The table follows, then the dropped
tables. For each, the rows are removed from all lines, versions expire, files are deleted, and all remaining
objects are read. If that finds rows that other clients brought in since, it is repeated a few times, and then
the rows are reported. The receipt is the last commit.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakelog.catalog.core.logs import (
    NO_MAINTENANCE,
    LogScope,
    LogTarget,
    NameTree,
    Progress,
    TableHead,
    no_progress,
    writing_as,
)
from lakelog.catalog.core.schema import Predicate
from lakelog.catalog.core.state import (
    STATEMENT,
    ErasureEnded,
    NameLink,
    NamespaceEntry,
    NamespaceState,
    RowsErased,
    encode,
)
from lakelog.catalog.errors import CommitConflict, DoneInPart, NoSuchColumn, NoSuchNamespace, NoSuchTable
from lakelog.catalog.keeping.erasure.checking import ErasureCheck, check
from lakelog.catalog.keeping.erasure.clearing import clear, drop_cuts, snapshots_anew
from lakelog.catalog.keeping.erasure.erased_log import ErasedLog
from lakelog.catalog.keeping.erasure.looking import ErasureSearch
from lakelog.catalog.keeping.erasure.model import ErasedTable, Forgotten
from lakelog.catalog.keeping.erasure.proposed import proposals_quoting
from lakelog.catalog.keeping.erasure.receipt import ReceiptSigner, statement_of
from lakelog.catalog.keeping.erasure.rewriting import erase_lines
from lakelog.catalog.keeping.erasure.texts import versions_quoting
from lakelog.catalog.keeping.erasure.work import ErasureWork
from lakelog.catalog.keeping.maintenance import purge
from lakelog.catalog.keeping.maintenance.expire import expire_logs, what_to_keep
from lakelog.catalog.keeping.maintenance.orphans import OrphanLog, remove
from lakelog.catalog.keeping.maintenance.promises import end_promises
from lakelog.catalog.names import Identifier
from lakelog.log import Draft, expiry
from lakelog.log.errors import FormatError, LakelogError, NotFound, Unsupported
from lakelog.log.leftovers import unreferenced

ROUNDS_MAX, TRIES_MAX = 3, 4

NO_SUCH = (NoSuchTable, NoSuchNamespace, NoSuchColumn)
"""Errors for objects that do not exist at all. Another process did not delete them."""

OWN_STATEMENT = "CALL forget (its condition is not kept)"
"""The statement of an erasure's commits, whatever a session keeps.

The real statement would quote the erased values.
"""

OUT_OF_REACH = (
    "older versions of objects that a bucket with versioning, or with object lock, keeps: delete them there",
    "backups, replicas and copies of the warehouse, and metadata exported to or published at other places",
    "checkpoints of streams, caches, spilled rows and event logs of engines, and tables that were made from these rows",
    "rows that an overwrite has written again: they are new rows, and are forgotten only if they match themselves",
    "temporary folders of lakelog on other machines, and unfinished uploads that a bucket keeps until a rule ends them",
    "files that a write which began before the erasure, and is fenced off, puts after it: the next vacuum deletes them",
)


def forget(
    tree: NameTree,
    identifier: Identifier,
    predicate: Predicate,
    *,
    dry_run: bool,
    signer: ReceiptSigner | None = None,
    reference: str | None = None,
    leave_foreign: bool = False,
    work: ErasureWork | None = None,
    progress: Progress | None = None,
) -> Forgotten:
    """Forget the rows of a table that match, or report what that would do.

    Raises NoSuchTable. Raises InvalidInput for an unknown column, and for files of another writer unless
    `leave_foreign`. Raises Unsupported for a condition that only an engine can evaluate. Raises DoneInPart if
    the work was not completed: the next call continues it.
    """
    if tree.logs.is_a_cut:
        raise Unsupported(NO_MAINTENANCE)
    report = progress or no_progress
    with writing_as({STATEMENT: OWN_STATEMENT}):
        for tries_left in reversed(range(TRIES_MAX)):
            attempt = _Forgetting(tree, identifier, predicate, work or ErasureWork(), report)
            try:
                return _tried(attempt, dry_run, signer, reference, leave_foreign)
            except NO_SUCH:
                raise
            except (NotFound, FormatError, DoneInPart) as error:
                # An expiry and a vacuum may have deleted objects before they were read. So the present state
                # is read again.
                if isinstance(error, DoneInPart) and not isinstance(error.__cause__, NotFound):
                    raise
                if not tries_left and not isinstance(error, NotFound):
                    raise
                if not tries_left:
                    raise CommitConflict(
                        f"rows of {attempt.head.name} cannot be forgotten now: others expire versions and delete files "
                        f"while these are read ({error}). What was done stays done: call it again when they have ended",
                        version=attempt.head.version,
                    ) from error
                report(f"{attempt.head.name}: what was read is gone meanwhile, so it is looked at again")
                attempt.let_go()
    raise AssertionError("the last try returns or raises")


def _tried(
    asked: _Forgetting,
    dry_run: bool,
    signer: ReceiptSigner | None,
    reference: str | None,
    leave_foreign: bool,
) -> Forgotten:
    asked.look(leave_foreign=leave_foreign)
    asked.look_at_temporary_folders(delete=not dry_run)
    if dry_run:
        return asked.answer(dry_run=True)
    asked.empty_bases()
    if not asked.is_due:
        return asked.answer(dry_run=False)
    asked.do(reference)
    return asked.end(signer, reference)


class _Forgetting(ErasureSearch):
    """Does the work that is due, and answers."""

    def empty_bases(self) -> None:
        """Empty the bases also if no file has rows of the erasure.

        Bases from earlier times are never deleted.
        """
        for log in self.logs:
            expiry.blank(log.head.tracked.log)

    def do(self, reference: str | None) -> None:
        event = RowsErased(erasure=self.id, filter=self.filter, reference=reference)
        dropped_logs = self.dropped
        self._remove_orphans(self.orphans)
        # Each log comes before the logs that keep files for it.
        for log in self.logs:
            dropped_logs = [item for item in dropped_logs if not self._is_purged(item)]
            if not log.is_due:
                continue
            try:
                self._erase(log, event)
            except CommitConflict:
                raise
            except LakelogError as error:
                if isinstance(error, NotFound) and not isinstance(error, NO_SUCH):
                    raise
                if log.kind == "table":
                    raise
                log.say(error=str(error))
                self.left.append(f"{log.head.name} was not, or not all, erased: {error}")
                continue
            self._released.add(log.head.id)
        while dropped_logs:
            unpurged = [item for item in dropped_logs if not self._is_purged(item)]
            if len(unpurged) == len(dropped_logs):
                break
            dropped_logs = unpurged
        for log in dropped_logs:
            self.left.append(f"{log.head.name} was not purged: {log.done.error}")
        for item in self.namespaces:
            self._expire_namespace(item)
        orphan_count = len(self.orphans)
        self.look_again_at_unlinked()
        self._remove_orphans(self.orphans[orphan_count:])

    def _remove_orphans(self, orphans: Sequence[OrphanLog]) -> None:
        for orphan in orphans:
            if remove(self.tree, orphan):
                self._released.add(orphan.id)
            else:
                self.left.append(f"{orphan.purge.name}, a clone, has got its name meanwhile: call this again")

    def _erase(self, log: ErasedLog, event: RowsErased) -> None:
        assert log.rows is not None, "what is erased was looked at"
        written_paths, deleted_keys = set[str](), set[str]()
        result = ErasureCheck()
        end_promises(self.tree.logs, log.head.tracked, log.head.tracked.current())
        for _ in range(ROUNDS_MAX):
            old_paths = {path for path in self._files(log.head)}
            head, erased_paths = erase_lines(
                log.head, log.rows, event, self._released.__contains__, self._progress
            )
            log.head = head
            written_paths |= set(self._files(head)) - old_paths
            deleted_keys |= set(clear(self.tree, head, log.path, self._progress, result.unburied))
            self._progress(f"{head.name}: all that is left is read")
            log.head = head.at(head.tracked.current())
            result = check(log.head, log.rows, self.values)
            if not result.again:
                break
        self.left += result.left
        for version in versions_quoting(log.head.tracked, self.values):
            self.left.append(
                f"{log.head.name}: the statement of version {version}, committed meanwhile, quotes a value"
            )
        log.say(
            erased_at=log.head.state.erased,
            written=tuple(sorted(written_paths)),
            deleted=tuple(sorted(deleted_keys)),
            checked_objects=result.objects,
            checked_rows=result.rows,
        )

    @staticmethod
    def _files(head: TableHead) -> list[str]:
        fetch = head.tracked.log.read_blobs
        return [
            path
            for state in head.state.lines()
            for chunk in state.files.chunks(fetch, ())
            for path in chunk["path"].to_pylist()
        ]

    def _is_purged(self, log: ErasedLog) -> bool:
        """Purge a dropped table, if no other log needs its files any more, and return whether that is done."""
        head = log.head
        link = head.state.link
        if link is None:
            log.say(error="it has no name that it was dropped from: purge it by hand")
            return False
        try:
            namespace = self.tree.logs.namespace(link.namespace)
            view = namespace.current()
            entry = NamespaceEntry(kind="table", id=head.id, location=head.tracked.location)
            drop_cuts(self.tree, head.tracked.location)
            plan = purge.plan_purge(
                self.tree, "table", head.name, entry, link=NameLink(namespace=link.namespace, name=link.name)
            )
            if plan is not None and not purge.do(self.tree, plan):
                clones = purge.clones_of(self.tree, plan)
                why = f"clones need its files: {', '.join(clones)}" if clones else "it was restored meanwhile"
                log.say(error=why)
                return False
            expiry.blank(head.tracked.log)
            target: LogTarget[NamespaceState] = LogTarget(head.name, None, namespace, view)
            purge.take_off_the_list(target, [head.id])
            deleted_keys = () if plan is None else tuple(sorted(plan.content.files))
            log.say(deleted=deleted_keys, erased_at=head.tracked.current().version, error=None)
        except LakelogError as error:
            log.say(error=str(error))
            return False
        self._released.add(head.id)
        return True

    def _expire_namespace(self, table: ErasedTable) -> None:
        location = self.tree.logs.location(table.location)
        namespace_log = self.tree.logs.namespace(location)
        drop_cuts(self.tree, location)
        # The statement may belong to an undecided transaction.
        view = namespace_log.settled()
        scope = LogScope(namespaces=[LogTarget(table.name, None, namespace_log, view)])
        for result in expire_logs(
            self.tree, scope, what_to_keep(version=view.version), dry_run=False, trust_clock=True
        ):
            if result.error is not None or result.kept_for_cuts:
                self.left.append(
                    f"older versions of {table.name} did not expire: {result.error or 'a cut has them'}"
                )
        expiry.blank(namespace_log.log)
        # Snapshots and pages of names have former views and functions.
        snapshots_anew(namespace_log)
        unused_keys = unreferenced(
            namespace_log.log, namespace_log.current(), expiry.last_base(namespace_log.log)
        )
        keys = [*unused_keys, *proposals_quoting(namespace_log, self.values)]
        if keys:
            namespace_log.store.delete(keys)

    # The answer

    def answer(self, *, dry_run: bool) -> Forgotten:
        return Forgotten(
            erasure=self.id,
            table=self.head.name,
            filter=self.filter,
            dry_run=dry_run,
            tables=tuple([*(log.done for log in (*self.logs, *self.dropped)), *self.namespaces]),
            lost=tuple(dict.fromkeys(self.lost)),
            left=tuple(dict.fromkeys(self.left)),
            out_of_reach=(*OUT_OF_REACH, *self.unreached),
        )

    def end(self, signer: ReceiptSigner | None, reference: str | None) -> Forgotten:
        """Commit the receipt in each erased log, and return it."""
        answer = self.answer(dry_run=False)
        statement = statement_of(
            self.id, self.filter, reference, answer.tables, answer.lost, answer.left, answer.out_of_reach
        )
        signature = None if signer is None else signer.sign(statement.encode())
        event = ErasureEnded(
            erasure=self.id,
            statement=statement,
            signature=signature,
            signed_by=None if signer is None else signer.key,
        )
        version, hash = None, None
        for log in self.logs:
            if log.done.erased_at is None or log.done.error is not None:
                continue
            table_log = log.head.tracked
            commit = table_log.commit(table_log.current(), lambda view, passed: Draft(events=encode([event])))
            if log.kind == "table":
                version, hash = commit.version, commit.view.hash
        return msgspec.structs.replace(
            answer,
            version=version,
            commit_hash=hash,
            statement=statement,
            signature=signature,
            signed_by=event.signed_by,
        )
