"""Forgetting rows: the order of it, over a table, its clones, and the dropped tables that had its name.

Clones first, so that their source need not keep files for them; then the table; then what was dropped. For each: no
line has such rows, then versions expire and files are deleted, then all that is left is read. If that finds rows that
others brought in meanwhile, it is done again, a few times; then they are reported. The receipt is the last commit.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakelog.catalog.core.logs import (
    NO_MAINTENANCE,
    NameTree,
    Progress,
    Scope,
    TableHead,
    Target,
    no_progress,
    writing_as,
)
from lakelog.catalog.core.schema import Predicate
from lakelog.catalog.core.state import (
    STATEMENT,
    Entry,
    ErasureEnded,
    Link,
    NamespaceState,
    RowsErased,
    encode,
)
from lakelog.catalog.errors import CommitConflict, NoSuchColumn, NoSuchNamespace, NoSuchTable
from lakelog.catalog.keeping.erasure.checking import Checked, check
from lakelog.catalog.keeping.erasure.clearing import clear, drop_cuts
from lakelog.catalog.keeping.erasure.erased_log import ErasedLog
from lakelog.catalog.keeping.erasure.looking import Looking
from lakelog.catalog.keeping.erasure.model import ErasedTable, Forgotten
from lakelog.catalog.keeping.erasure.receipt import Signer, statement_of
from lakelog.catalog.keeping.erasure.rewriting import erase_lines
from lakelog.catalog.keeping.erasure.texts import versions_quoting
from lakelog.catalog.keeping.erasure.work import ErasureWork
from lakelog.catalog.keeping.maintenance import Orphan, end_promises, expire_logs, purge, remove, what_to_keep
from lakelog.catalog.names import Identifier
from lakelog.log import Draft, expiry
from lakelog.log.errors import FormatError, LakelogError, NotFound, Unsupported

ROUNDS_MAX, TRIES_MAX = 3, 4

NO_SUCH = (NoSuchTable, NoSuchNamespace, NoSuchColumn)
"""What is not there at all. It was not deleted by another process."""

OWN_STATEMENT = "CALL forget (its condition is not kept)"
"""What commits of an erasure have for a statement, whatever a session keeps: it would quote what is to be forgotten."""

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
    signer: Signer | None = None,
    reference: str | None = None,
    leave_foreign: bool = False,
    work: ErasureWork | None = None,
    progress: Progress | None = None,
) -> Forgotten:
    """Forget the rows of a table that match, or say what that would do. NoSuchTable; InvalidInput for a column that is
    not there, and for files of another writer unless they are to be left; Unsupported for a condition that only an
    engine knows. DoneInPart where it could not be ended: the next call goes on."""
    if tree.logs.is_a_cut:
        raise Unsupported(NO_MAINTENANCE)
    said = progress or no_progress
    with writing_as({STATEMENT: OWN_STATEMENT}):
        for tries_left in reversed(range(TRIES_MAX)):
            asked = _Forgetting(tree, identifier, predicate, work or ErasureWork(), said)
            try:
                return _tried(asked, dry_run, signer, reference, leave_foreign)
            except NO_SUCH:
                raise
            except (NotFound, FormatError) as error:
                # An expiry and a vacuum may have deleted what this was about to read: what there is now is looked at.
                if not tries_left and isinstance(error, FormatError):
                    raise
                if not tries_left:
                    raise CommitConflict(
                        f"rows of {asked.head.name} cannot be forgotten now: others expire versions and delete files "
                        f"while these are read ({error}). What was done stays done: call it again when they have ended",
                        version=asked.head.version,
                    ) from error
                said(f"{asked.head.name}: what was read is gone meanwhile, so it is looked at again")
                asked.let_go()
    raise AssertionError("the last try returns or raises")


def _tried(
    asked: _Forgetting, dry_run: bool, signer: Signer | None, reference: str | None, leave_foreign: bool
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


class _Forgetting(Looking):
    """Does what was found to be due, and answers."""

    def empty_bases(self) -> None:
        """Also where no file has such rows any more: bases from when one had them are never deleted."""
        for each in self.logs:
            expiry.blank(each.head.tracked.log)

    def do(self, reference: str | None) -> None:
        event = RowsErased(erasure=self.id, filter=self.filter, reference=reference)
        dropped = self.dropped
        self._remove_orphans(self.orphans)
        # Each before those that keep files for it.
        for log in self.logs:
            dropped = [each for each in dropped if not self._is_purged(each)]
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
        while dropped:
            left = [each for each in dropped if not self._is_purged(each)]
            if len(left) == len(dropped):
                break
            dropped = left
        for log in dropped:
            self.left.append(f"{log.head.name} was not purged: {log.done.error}")
        for each in self.namespaces:
            self._expire_namespace(each)
        removed = len(self.orphans)
        self.look_again_at_unlinked()
        self._remove_orphans(self.orphans[removed:])

    def _remove_orphans(self, orphans: Sequence[Orphan]) -> None:
        for orphan in orphans:
            if remove(self.tree, orphan):
                self._released.add(orphan.id)
            else:
                self.left.append(f"{orphan.purge.name}, a clone, has got its name meanwhile: call this again")

    def _erase(self, log: ErasedLog, event: RowsErased) -> None:
        assert log.rows is not None, "what is erased was looked at"
        written, deleted = set[str](), set[str]()
        checked = Checked()
        end_promises(self.tree.logs, log.head.tracked, log.head.tracked.current())
        for _ in range(ROUNDS_MAX):
            before = {path for path in self._files(log.head)}
            head, gone = erase_lines(log.head, log.rows, event, self._released.__contains__, self._progress)
            log.head = head
            written |= set(self._files(head)) - before
            deleted |= set(clear(self.tree, head, log.path, self._progress, checked.unburied))
            self._progress(f"{head.name}: all that is left is read")
            log.head = head.at(head.tracked.current())
            checked = check(log.head, log.rows, self.values)
            if not checked.again:
                break
        self.left += checked.left
        for version in versions_quoting(log.head.tracked, self.values):
            self.left.append(
                f"{log.head.name}: the statement of version {version}, committed meanwhile, quotes a value"
            )
        log.say(
            erased_at=log.head.state.erased,
            written=tuple(sorted(written)),
            deleted=tuple(sorted(deleted)),
            checked_objects=checked.objects,
            checked_rows=checked.rows,
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
        """Purge what was dropped, if no other log needs its files any more, and return whether that is done."""
        head = log.head
        link = head.state.link
        if link is None:
            log.say(error="it has no name that it was dropped from: purge it by hand")
            return False
        try:
            namespace = self.tree.logs.namespace(link.namespace)
            view = namespace.current()
            entry = Entry(kind="table", id=head.id, location=head.tracked.location)
            drop_cuts(self.tree, head.tracked.location)
            planned = purge.plan_purge(
                self.tree, "table", head.name, entry, link=Link(namespace=link.namespace, name=link.name)
            )
            if planned is not None and not purge.do(self.tree, planned):
                clones = purge.clones_of(self.tree, planned)
                why = f"clones need its files: {', '.join(clones)}" if clones else "it was restored meanwhile"
                log.say(error=why)
                return False
            expiry.blank(head.tracked.log)
            target: Target[NamespaceState] = Target(head.name, None, namespace, view)
            purge.take_off_the_list(target, [head.id])
            deleted = () if planned is None else tuple(sorted(planned.content.files))
            log.say(deleted=deleted, erased_at=head.tracked.current().version, error=None)
        except LakelogError as error:
            log.say(error=str(error))
            return False
        self._released.add(head.id)
        return True

    def _expire_namespace(self, each: ErasedTable) -> None:
        location = self.tree.logs.location(each.location)
        tracked = self.tree.logs.namespace(location)
        drop_cuts(self.tree, location)
        # The statement may be one of a transaction that is undecided.
        view = tracked.settled()
        scope = Scope(namespaces=[Target(each.name, None, tracked, view)])
        for found in expire_logs(
            self.tree, scope, what_to_keep(version=view.version), dry_run=False, trust_clock=True
        ):
            if found.error is not None or found.kept_for_cuts:
                self.left.append(
                    f"older versions of {each.name} did not expire: {found.error or 'a cut has them'}"
                )
        expiry.blank(tracked.log)

    # The answer

    def answer(self, *, dry_run: bool) -> Forgotten:
        return Forgotten(
            erasure=self.id,
            table=self.head.name,
            filter=self.filter,
            dry_run=dry_run,
            tables=tuple([*(each.done for each in (*self.logs, *self.dropped)), *self.namespaces]),
            lost=tuple(dict.fromkeys(self.lost)),
            left=tuple(dict.fromkeys(self.left)),
            out_of_reach=(*OUT_OF_REACH, *self.unreached),
        )

    def end(self, signer: Signer | None, reference: str | None) -> Forgotten:
        """Commit the receipt in each log that was erased, and return it."""
        found = self.answer(dry_run=False)
        statement = statement_of(
            self.id, self.filter, reference, found.tables, found.lost, found.left, found.out_of_reach
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
            tracked = log.head.tracked
            done = tracked.commit(tracked.current(), lambda view, passed: Draft(events=encode([event])))
            if log.kind == "table":
                version, hash = done.version, done.view.hash
        return msgspec.structs.replace(
            found,
            version=version,
            commit_hash=hash,
            statement=statement,
            signature=signature,
            signed_by=event.signed_by,
        )
