"""The rules of the protocol, each a switch: a search can be made with any of them taken away.

A rule of log/README.md that protects from several things is several switches, one for each. `on(rule)` is asked by the
programs at the place where the rule matters; `without(rule)` takes it away for a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum


class Rule(Enum):
    CONDITIONAL_PUT = "A commit is created by put-if-absent."
    DECIDED_CURSOR = "A writer puts behind a decided version only; nothing follows an undecided intent."
    TAKEN_IS_READ = "After `taken` the writer reads who took it: it may be the echo of its own success."
    ERROR_IS_READ = "After an error the writer reads what is there: its put may have been applied."
    ABSENT_IS_REPEATED = "An absent key after an error proves nothing: the same put is repeated."
    REBASE_DECIDES = "A rebase evaluates the precondition anew on the state at its cursor."
    INTENT_DECIDES = "An intent that rebases evaluates its precondition anew, too."
    REFUSAL_AT_HEAD = "A refusal is final only where nothing follows the view that it was decided on."
    SETTLES = "The commit after an intent records that intent's outcome and time."
    ORIGINAL_BASE = "A retry compares the ids of all versions since the original base."
    JUMP_COMPARES = "A rebase that jumps to a base compares the ids of what it jumps over."
    ABORTED_IS_NOT_DONE = "An aborted attempt with my id is not me having been applied."
    SNAPSHOT_DECIDED = "A snapshot is written for a decided version only."
    SNAPSHOT_SETTLED = "A snapshot is written for a version that is settled only."
    SNAPSHOT_SETTLES = (
        "A snapshot at an intent's version gives the intent's outcome and time to the next writer."
    )
    HINT_HASH = "A hint names the hash of its commit, and a reader compares it."
    FIRST_ABSENCE = "Of versions read in parallel only those before the first absent one count."
    UNDECIDED_UNSEEN = "An undecided intent has no effect for a reader."
    FRESH_TXN = "A transaction's id is new for each attempt and process."
    ALL_INTENTS_FIRST = "The decision is put after all intents are settled."
    COORDINATOR_COMMITS = "Only the coordinator writes `committed`; others write `aborted`."
    DECISION_SETTLED = "A doubtful decision is settled by reading it."
    DECISION_KEPT = "A decision is never deleted."
    ANY_ACTOR_ABORTS = "An actor that meets an undecided intent may abort it."
    OBEY_DECISION = "Who tried to abort obeys what the decision then says."
    ONE_TIME = "A transaction has the decision's time in all its logs."
    TIME_AFTER_DECISION = "The times of an intent's successors are after its decision's time."
    DECISION_AFTER_INTENTS = "A decision's time is not before any of its intents' times."
    PLACE_FROM_LIST = (
        "A decision's place follows from the transaction's id and the folder that is hashed into it."
    )
    ID_HAS_LIST = (
        "A transaction's id contains the hash of its folder and of the tree over its list of participants."
    )
    OUTSIDE_IS_VOID = (
        "An intent in another log than the one that it proves to be listed is void: it is never followed."
    )
    DEEPEST_FOLDER = "A decision lies in the deepest folder that holds all participants."
    ABORT_OF_ANY_COMMIT = (
        "An abort counts, whatever commit it names: the intent that its writer met may be forged."
    )
    RIGHTS_PROBED = "A client that may not write the decision puts no intent."
    CUT_READS_DECISIONS = "A reader of several logs that may not read a pending decision shows nothing."
    CUT_IS_CHECKED = (
        "A cut is saved once nothing of it has expired, looked at between its intent and its decision."
    )
    CUTS_READ_LAST = "An expiry reads the saved cuts after the commit that says what expires."
    CUTS_ARE_SETTLED = "An expiry does not go on while it is undecided whether a cut is saved."
    CUT_OF_ITS_FOLDER = "A namespace's cut has logs of its own folder alone, whose expiry looks for it there."
    RECHECK_CURSORS = "A reader of several logs looks again at all of them, until nothing has changed."
    RECHECK_DECISIONS = "A reader of several logs looks again at the decisions that were pending."
    EXTEND_THEN_CHECK = "A cut reads the log that it takes in first, and then checks those taken before."
    ROUND_IS_CHECKED = (
        "Logs that were read in one parallel round are looked at again before they are shown together."
    )
    VALIDATE_READS = "Logs that a transaction only read are checked between its last intent and its decision."
    TOMBSTONES = "Expiry overwrites commits with tombstones; keys are never freed."
    TOMBSTONE_OUTCOME = "A tombstone says whether the commit that it replaces took effect."
    BASE_BEFORE_TOMBSTONES = "Tombstones are put after their base."
    TOMBSTONES_ACKNOWLEDGED = (
        "What says that tombstones are there is put once the put of each was acknowledged."
    )
    WINDOW_END_LAST = "The last version of a window is its last tombstone: it says that the others are there."
    WINDOWS_IN_ORDER = "A window is begun once all of the windows before it are tombstones."
    BURIED_BEFORE_NEXT_BASE = (
        "A base is made once all versions up to the one before are tombstones: its own windows begin there."
    )
    BASES_INCREASE = "Each base is at a later version than the one before it."
    MANIFESTS_BEFORE_BASE = "A base's manifests are durable before the base."
    BASES_ARE_KEPT = "Bases stand under keys of their own, in a sequence, not as a pointer in a tombstone."
    LAST_BASE_HAS_STATE = "Only a base that another one follows may lose its state."
    WALK_ON = "A reader whose manifest is gone walks on to the next base."
    DERIVED_FROM_LAST = "A base is derived from the base before it, and uses nothing that one gave up."
    NEWER_BASE_DISTRUSTS = "A hint that uses what a base after its own has given up is not believed."
    HINT_IS_A_HINT = "A broken or missing hint falls back to the bases."
    FORGET_FIRST = "A cleaner removes an unlinked table only after its id is forgotten in its namespace."
    UNCHANGED_SINCE_SEEN = (
        "A cleaner seals an unlinked table only where it is as it was before its id was forgotten."
    )
    FENCE_FIRST = "A cleaner removes files of writes under way only after a fence."
    RETAINED_FILES = "A cleaner keeps all files of all versions since the last base."
    NAME_IS_PRECONDITION = "A write by name is refused where the table's own log has another name for it."
    NAME_IS_COMPARED = (
        "What is loaded by a name is looked up again where its own log has another name for it."
    )
    MOVED_LOG_WRITTEN = "A rename writes into the log that it renames, too."
    RENAME_IS_ONE = "A rename is one transaction of the namespaces and the log that it renames."
    DROP_SEALS = "A drop seals the dropped log in the same transaction."
    ROOT_TAKES_PART = "A move of a namespace takes the catalog's root log as a participant."
    ANCESTRY_RECHECKED = "A move of a namespace looks at the ancestors again after its intents are placed."
    EMPTY_IS_PRECONDITION = "`Is empty` is decided anew on the state that a drop seals."
    PURGE_COMMITTED = "Files of a dropped table are deleted only after a commit that purges."
    PURGE_UNCHANGED = "A purge follows the very seal that it was decided on, not one of a later drop."
    PURGE_FENCES = (
        "A purge fences, so that it deletes no file of a log that is opened after it at the same place."
    )
    PURGED_IS_FINAL = "Nothing but a commit that reopens follows a purge."
    RESTORES_SAME_LOG = "A restore is refused where another log was opened since the seal."
    SEALED_IS_CLOSED = "Nothing but restores, purges and reopens follows a seal."
    DELETION_VECTOR_REPLACES = "A deletion vector replaces exactly the one of its file that it was made from."
    REWRITE_SEES_DELETES = "A rewrite conflicts with a deletion vector that its files got since its base."
    SHARED_IDS = "A rebase and a retry compare the ids of all changes that share a version."
    SHARED_IN_TURN = "Each change of a version is decided on the state that those before it leave."
    SHARED_AFTER_PUT = (
        "What became of a change that shares a version is reported once the version is settled."
    )
    SHARED_APART = (
        "A change does not remove what another change of its version added: it waits for the next one."
    )
    TOMBSTONE_IDS = "A tombstone keeps the ids of all changes of its version, and which of them were refused."
    WINDOW_ENDS = "A proposal is applied in the versions of its window only."
    WINDOW_COMPARED = "A combiner compares the ids of all versions since the one that a proposal saw."
    WINDOW_KNOWN = (
        "A combiner leaves a proposal alone that saw an older version than the first whose ids it knows."
    )
    WINDOW_IS_NO_REFUSAL = "That a window is over is never written down as a refusal."
    ONCE_IN_A_VERSION = "Of several proposals of one change a combiner takes one."
    COMPARED_FIRST = (
        "A client proposes once it has compared the ids up to the version that the proposal names."
    )
    REFUSAL_STORED = "A combiner writes down what it refuses."
    REFUSED_IS_FINAL = "A change that was refused in the log is never applied afterwards."
    PENDING_IS_OPEN = (
        "A proposer reports as failed what the log has refused, or once the window is over; nothing else."
    )
    RETRY_REFUSES = (
        "A retry, or a proposer that goes ahead by itself, writes its refusal down: a proposal may be there."
    )
    SEAL_ENDS_WINDOWS = "No proposal from before a seal is applied after it, also where the log is restored."
    FENCE_COVERS_PROPOSALS = "A proposal of files that were written before a fence is refused after it."
    FENCE_COVERS_COMBINERS = "A file that a combiner writes is fenced off like any other."
    COMBINED_ANEW = "A combiner that lost its version writes the file anew for the changes that are left."
    COMBINED_FIRST = "The file of a version's rows is durable before the version."
    PROPOSAL_OF_ITS_KEY = "A proposal counts under the key alone that its version and its change give it."
    SET_BACK_ENDS_CLIENTS = "A store is set back to an earlier time only once all its clients have ended."
    POSITION_HAS_HASH = "A stream's checkpoint has the hash of the commit that was read last."
    BATCH_HAS_HASH = "The checkpoint of a stream that writes has the hash of the commit of its last batch."
    UNREADABLE_IS_LEFT = "A proposal that cannot be read is left alone, and does not hold up others."


_missing: set[Rule] = set()


def on(rule: Rule) -> bool:
    return rule not in _missing


@contextmanager
def without(*rules: Rule) -> Iterator[None]:
    """Take rules away for a block."""
    _missing.update(rules)
    try:
        yield
    finally:
        _missing.difference_update(rules)
