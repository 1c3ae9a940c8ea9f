"""The contents of the store, the state that commits fold to, and the changes that may be written on it. Pure.

Objects are small: a commit's attempt id stands for its hash, a table's rows are the ids of the changes that made
them, and a log id is a word. Keys are tuples: ("log", place, version), ("hint", place), ("base", place, number),
("manifest", place, name), ("txn", folder, txn), ("file", place, name, version that its write started from).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.model.rules import Rule, on

CONDITIONS = ("by-name", "empty", "entries", "unapplied", "after", "undeleted", "unseen", "unchanged")
Key = tuple[Any, ...]
Event = tuple[Any, ...]


class Change(NamedTuple):
    """One of the changes that share a version: applied, or refused for good."""

    cid: str
    events: tuple[Event, ...]
    why: str = ""  # it was refused
    write: int | None = None
    rows: bool = False  # they are in the file that the version adds for all of its changes


class Commit(NamedTuple):
    log_id: str
    version: int
    cid: str
    attempt: Any  # new for every put, so that it can stand for the hash
    prev: Any
    time: int
    events: tuple[Event, ...] = ()
    flag: str = ""  # seals, restores, purges, reopens
    intent: Any = None  # an Intent: the transaction whose decision decides this commit
    settles: tuple[str, int] | None = None
    fence: int = 0
    changes: tuple[Change, ...] = ()  # those that share this version; `cid` is then the version's own


class Tombstone(NamedTuple):
    log_id: str
    version: int
    cid: str
    attempt: Any
    time: int
    outcome: str
    flag: str
    base: int = 0  # only where bases stand in tombstones, which is one of the ways to go wrong
    ids: tuple[
        tuple[str, str], ...
    ] = ()  # of the changes that shared the version: id, and why it was refused


class Intent(NamedTuple):
    """Of a transaction: its id, its log's place, and the proof that this is in the list of its participants.

    The id has the list's count and the root of the hash tree over it in place of the hash of both. A hash is what was
    hashed: ("leaf", place) or ("node", left, right). So an actor knows those that it can make from what it has read.
    """

    txn: Any
    log: str
    folder: str
    at: int = 0  # in the sorted list
    logs: int = 1  # how many it has
    proof: tuple[Any, ...] = ()
    named: Key | None = None  # only where an intent names the place of its decision


class Decision(NamedTuple):
    outcome: str
    time: int = 0
    positions: tuple[tuple[str, int], ...] = ()
    via: str = ""  # by which log's intent it was met, where logs are in folders; only for the checks
    cid: str = ""  # the commit that was met there


VOID = Decision("aborted")
DAMAGED = Decision("damaged")


def obeyed(decision: Decision | None, cid: str) -> Decision | None:
    """What a decision says of an intent of the commit `cid`."""
    strange = decision is not None and decision.cid not in ("", cid)
    return DAMAGED if strange and not on(Rule.ABORT_OF_ANY_COMMIT) else decision


class State(NamedTuple):
    """A table's or a namespace's state; each uses its own part."""

    applied: tuple[str, ...] = ()
    entries: frozenset[tuple[str, str]] = frozenset()  # name -> log id
    forgotten: frozenset[str] = frozenset()
    files: frozenset[tuple[str, int]] = frozenset()
    parent: str = ""  # the namespace that it is linked in
    name: str = ""  # the name that a table has there
    rows: frozenset[Any] = frozenset()  # of the published scenarios
    expired: int = 0  # versions before it
    cuts: frozenset[tuple[str, int]] = frozenset()  # the versions that saved cuts have, by their logs


class View(NamedTuple):
    """A log at a decided version."""

    place: str
    log_id: str = ""
    version: int = 0
    hash: Any = None
    time: int = 0
    status: str = "open"  # open, sealed, purged
    fence: int = 0
    state: State = State()
    settles: tuple[str, int] | None = None  # where this version was an intent
    base: int = 0  # number of the base that this was derived from
    uses: tuple[Any, ...] = ()
    tail: tuple[Event, ...] = ()  # events that no manifest in `uses` has


class Root(NamedTuple):
    """A snapshot without its manifests: the hint, and what a base holds."""

    view: View  # with an empty state
    number: int


class Request(NamedTuple):
    """A change of one log: what it is about, and which log it means."""

    cid: str
    place: str
    log_id: str
    events: tuple[Event, ...]
    flag: str = ""  # as a commit's, or "creates"
    needs: tuple[Event, ...] = ()  # preconditions beside those that the events have
    write: int | None = None  # the version that the write of its files started from
    rows: bool = False  # its rows go with the proposal


def log_key(place: str, version: int) -> Key:
    return ("log", place, version)


def base_key(place: str, number: int) -> Key:
    return ("base", place, number)


def new_intents(me: str, attempt: int, participants: tuple[str, ...]) -> tuple[Intent, ...]:
    """The intents of an honest transaction, in the order of its participants."""
    folder, listed_participants = decisions_folder(participants), tuple(sorted(participants))
    id = (
        (me, attempt, folder, len(listed_participants), tree(listed_participants))
        if on(Rule.ID_HAS_LIST)
        else (me, attempt)
    )
    named_texts = None if on(Rule.PLACE_FROM_LIST) else ("txn", folder, id)
    return tuple(
        Intent(
            id,
            place,
            folder,
            listed_participants.index(place),
            len(listed_participants),
            proof(listed_participants, listed_participants.index(place)),
            named_texts,
        )
        for place in participants
    )


def tree(places: tuple[str, ...]) -> Any:
    """The root of the hash tree over a list."""
    if len(places) == 1:
        return ("leaf", places[0])
    remaining_number = _left_of(len(places))
    return ("node", tree(places[:remaining_number]), tree(places[remaining_number:]))


def proof(places: tuple[str, ...], index: int) -> tuple[Any, ...]:
    """What stands beside the way from a leaf up to the root."""
    if len(places) == 1:
        return ()
    remaining_number = _left_of(len(places))
    if index < remaining_number:
        return (*proof(places[:remaining_number], index), tree(places[remaining_number:]))
    return (*proof(places[remaining_number:], index - remaining_number), tree(places[:remaining_number]))


def proven(place: str, index: int, count: int, hashes: tuple[Any, ...]) -> Any:
    """The root of the list of that count which has the place there, by a proof; None if that proves nothing."""
    if count == 1:
        return ("leaf", place) if index == 0 and not hashes else None
    remaining_number = _left_of(count)
    if not hashes or not 0 <= index < count:
        return None
    if index < remaining_number:
        below = proven(place, index, remaining_number, hashes[:-1])
        return below and ("node", below, hashes[-1])
    below = proven(place, index - remaining_number, count - remaining_number, hashes[:-1])
    return below and ("node", hashes[-1], below)


def _left_of(count: int) -> int:
    """The greatest power of two below the count."""
    return 1 << (count - 1).bit_length() - 1


def decision_key(place: str, intent: Intent) -> Key | None:
    """Where the decision of an intent in the log at `place` is. None: the intent is void."""
    if not on(Rule.PLACE_FROM_LIST):
        return intent.named
    root = proven(intent.log, intent.at, intent.logs, intent.proof)
    if on(Rule.ID_HAS_LIST) and intent.txn[2:] != (intent.folder, intent.logs, root):
        return None
    if on(Rule.OUTSIDE_IS_VOID) and place != intent.log:
        return None
    return ("txn", intent.folder, intent.txn)


def decisions_folder(places: tuple[str, ...]) -> str:
    """The deepest folder that holds all the places."""
    if not on(Rule.DEEPEST_FOLDER):
        return ""
    parts = [place.split("/") for place in places]
    held_number = 0
    while all(len(part) > held_number and part[held_number] == parts[0][held_number] for part in parts):
        held_number += 1
    return "/".join(parts[0][:held_number])


def may_use(key: Key, may: tuple[str, ...] | None) -> bool:
    """Whether an actor with rights to these folders alone (None: to all) may read and write the decision."""
    return may is None or any(key[1] == folder or key[1].startswith(folder + "/") for folder in may)


def fold(state: State, events: tuple[Event, ...]) -> State:
    for event in events:
        kind, *about = event
        if kind == "applied":
            state = state._replace(applied=(*state.applied, about[0]))
        elif kind == "link":
            state = state._replace(entries=state.entries | {(about[0], about[1])})
        elif kind == "unlink":
            state = state._replace(entries=state.entries - {(about[0], about[1])})
        elif kind == "forget":
            state = state._replace(forgotten=state.forgotten | {about[0]})
        elif kind == "add":
            state = state._replace(files=state.files | {(about[0], about[1])})
        elif kind == "remove":
            state = state._replace(files=state.files - {(about[0], about[1])})
        elif kind == "is":
            state = about[0]
        elif kind == "expires":
            state = state._replace(expired=max(state.expired, about[0]))
        elif kind == "cut":
            state = state._replace(cuts=state.cuts | set(about[0]))
        elif kind == "reset":
            state = State()
        elif kind == "moved":
            state = state._replace(parent=about[0], name=about[1] if len(about) > 1 else "")
        elif kind == "rows":
            state = state._replace(rows=(state.rows - about[0]) | about[1])
        else:
            assert kind in CONDITIONS, kind
    return state


def applied(view: View, commit: Commit, outcome: str, time: int) -> View | None:
    """The view after the commit; None if the commit does not continue it."""
    if commit.version != view.version + 1 or commit.prev != view.hash or outcome == DAMAGED.outcome:
        return None
    settles = (outcome, time) if commit.intent is not None else None
    if outcome == "aborted":
        return view._replace(version=commit.version, hash=commit.attempt, settles=settles)
    if commit.flag == "reopens":
        view = view._replace(log_id=commit.log_id, state=State(), status="open", uses=(), tail=(("reset",),))
    elif commit.log_id != (view.log_id or commit.log_id):
        return None
    status = {"seals": "sealed", "restores": "open", "purges": "purged"}.get(commit.flag, view.status)
    return view._replace(
        log_id=commit.log_id,
        version=commit.version,
        hash=commit.attempt,
        time=time if commit.intent is not None and on(Rule.TIME_AFTER_DECISION) else commit.time,
        status=status,
        fence=max(view.fence, commit.fence),
        state=fold(view.state, events_of(commit)),
        settles=settles,
        tail=view.tail + events_of(commit),
    )


def events_of(commit: Commit) -> tuple[Event, ...]:
    """What happened in a version: its changes in their order, and then what they have in common."""
    if not commit.changes:
        return commit.events
    applied_events = (event for change in commit.changes if not change.why for event in change.events)
    return (*applied_events, *commit.events)


def slim(view: View) -> View:
    """Without what only writers of snapshots need."""
    return view._replace(base=0, uses=(), tail=())


def refusal(request: Request, view: View) -> str | None:
    """Why the request cannot be written behind the view."""
    if request.flag == "creates":
        return None if view.version == 0 else "exists"
    if request.write is not None and request.write < view.fence:
        return "fenced"
    if request.flag == "reopens":
        return None if view.status != "open" else "is not sealed"
    if view.log_id != request.log_id and (request.flag != "restores" or on(Rule.RESTORES_SAME_LOG)):
        return "another log"
    if view.status == "purged" and (request.flag != "restores" or on(Rule.PURGED_IS_FINAL)):
        return "purged"
    if view.status == "sealed" and request.flag not in ("restores", "purges") and on(Rule.SEALED_IS_CLOSED):
        return "sealed"
    if view.status == "open" and request.flag in ("restores", "purges"):
        return "not sealed"
    for event in (*request.needs, *request.events):
        if event[0] == "unchanged" and event[1] != view.version and on(Rule.UNCHANGED_SINCE_SEEN):
            return "changed"
        why = precondition(event, view.state)
        if why is not None:
            return why
    return None


def precondition(event: Event, state: State) -> str | None:
    """Why the event cannot happen in the state."""
    kind, *about = event
    names = {name for name, _ in state.entries}
    if kind == "link" and about[0] in names:
        return "exists"
    if kind == "link" and about[1] in state.forgotten:
        return "forgotten"
    if kind == "unlink" and (about[0], about[1]) not in state.entries:
        return "not found"
    if kind == "forget" and about[0] in {log_id for _, log_id in state.entries}:
        return "linked"
    if kind == "remove" and (about[0], about[1]) not in state.files:
        return "gone"
    if (
        kind == "by-name"
        and (state.parent, state.name) != (about[0], about[1])
        and on(Rule.NAME_IS_PRECONDITION)
    ):
        return "renamed"
    if kind == "empty" and state.entries:
        return "not empty"
    if kind == "unapplied" and about[0] in state.applied:
        return "done by another"
    if kind == "after" and about[0] not in state.applied:
        return "too early"
    if kind == "entries" and state.entries != about[0]:
        return "others are there"
    if kind == "rows" and not about[0] <= state.rows and on(Rule.DELETION_VECTOR_REPLACES):
        return "conflict"
    is_deleted = any(row[0] == "dv" and row[1] == about[0] for row in state.rows) if about else False
    if kind == "undeleted" and is_deleted and on(Rule.DELETION_VECTOR_REPLACES):
        return "conflict"
    if kind == "unseen" and is_deleted and on(Rule.REWRITE_SEES_DELETES):
        return "conflict"
    return None


def draft(
    view: View, request: Request, me: str, clock: int, intent: Intent | None = None, fence: int = 0
) -> Commit:
    """The commit that does what the request says, behind the view."""
    return Commit(
        log_id=request.log_id,
        version=view.version + 1,
        cid=request.cid,
        attempt=(me, intent.txn[:2] if intent is not None else 0, view.place, view.version + 1),
        prev=view.hash,
        time=max(view.time + 1, clock),
        events=request.events + request.needs,
        flag="" if request.flag == "creates" else request.flag,
        intent=intent,
        settles=view.settles if on(Rule.SETTLES) else None,
        fence=fence,
    )


def tombstone(commit: Commit, outcome: str, time: int) -> Tombstone:
    if not on(Rule.TOMBSTONE_OUTCOME):
        outcome = "committed"
    ids = tuple((change.cid, change.why) for change in commit.changes) if on(Rule.TOMBSTONE_IDS) else ()
    return Tombstone(
        commit.log_id, commit.version, commit.cid, commit.attempt, time, outcome, commit.flag, ids=ids
    )
