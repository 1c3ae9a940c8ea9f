"""Whatever is encoded is decoded again, and no change of a stored byte goes unnoticed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakelog.log import Commit, Decision, FormatError, Intent, SettledIntent, Sidecar, WriteRef
from lakelog.log.format import FORMAT, decode_decision, decode_entry, encode
from lakelog.log.view import CLOCK_TOLERANCE_US, commit_time_us

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)
IDS = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
HASHES = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
NUMBERS = st.integers(0, 2**62)
TIMES_STORED = st.integers(0, 253_402_300_799_000_000)
TXNS = st.from_regex(r"[A-Za-z0-9_-]{1,31}-[0-9a-f]{32}", fullmatch=True)
PLACES = st.sampled_from(["", "n-1", "n-1/t-2", "/w/t", "s3://b/w/t"])
INTENTS = st.builds(
    Intent,
    txn=TXNS,
    log=PLACES,
    index=NUMBERS,
    count=NUMBERS,
    proof=st.lists(HASHES, max_size=3).map(tuple),
    folder=st.sampled_from(["", "n-1"]),
    warehouse=PLACES,
)
COMMITS = st.builds(
    Commit,
    format=st.just(FORMAT),
    log_id=IDS,
    version=st.integers(1, 2**63 - 1),
    commit_id=IDS,
    attempt_id=IDS,
    base=st.integers(0, 2**62),
    prev=st.just("") | HASHES,
    time_us=TIMES_STORED,
    writer=OBJECTS,
    write=st.none() | st.builds(WriteRef, id=IDS, version=NUMBERS),
    fence=st.integers(0, 2**62),
    seals=st.booleans(),
    reopens=st.booleans(),
    restores=st.booleans(),
    purges=st.booleans(),
    intent=st.none() | INTENTS,
    settles=st.none()
    | st.builds(SettledIntent, outcome=st.sampled_from(["committed", "aborted"]), time_us=TIMES_STORED),
    sidecars=st.lists(
        st.builds(
            Sidecar,
            name=st.builds("{:020d}-{}-{:016x}.bin".format, NUMBERS, IDS, NUMBERS),
            size_bytes=NUMBERS,
            hash=HASHES,
        ),
        max_size=2,
    ).map(tuple),
    events=st.lists(OBJECTS, max_size=3).map(tuple),
    features=st.just(()),
    hash=st.just(""),
)
TIMES = st.integers(0, 4_000_000_000_000_000)


@given(COMMITS)
def test_a_commit_is_decoded_as_it_was_encoded(commit: Commit) -> None:
    data = encode(commit)
    decoded_commit = decode_entry(data, "here")
    assert isinstance(decoded_commit, Commit)
    for name in Commit.__struct_fields__:
        if name != "hash":
            assert getattr(decoded_commit, name) == getattr(commit, name)


@given(COMMITS, st.data())
def test_no_altered_or_cut_commit_is_accepted(commit: Commit, data: st.DataObject) -> None:
    stored_data = encode(commit)
    at = data.draw(st.integers(0, len(stored_data) - 1))
    if data.draw(st.booleans()):
        damaged_bytes = stored_data[:at]
    else:
        byte = data.draw(st.integers(0, 255))
        assume(byte != stored_data[at])
        damaged_bytes = stored_data[:at] + bytes([byte]) + stored_data[at + 1 :]
    with pytest.raises(FormatError):
        decode_entry(damaged_bytes, "here")


@given(
    st.builds(
        Decision,
        format=st.just(FORMAT),
        txn=TXNS,
        commit_id=IDS,
        outcome=st.sampled_from(["committed", "aborted"]),
        time_us=TIMES_STORED,
        positions=st.dictionaries(st.text(), st.integers(1, 2**62), max_size=3),
    ),
    st.data(),
)
def test_a_decision_is_decoded_as_it_was_encoded_or_not_at_all(
    decision: Decision, data: st.DataObject
) -> None:
    stored_data = encode(decision)
    decoded_decision = decode_decision(stored_data, "here")
    assert (decoded_decision.outcome, decoded_decision.positions) == (decision.outcome, decision.positions)
    assert encode(msgspec.structs.replace(decoded_decision, hash="")) == stored_data
    at = data.draw(st.integers(0, len(stored_data) - 1))
    with pytest.raises(FormatError):
        decode_decision(stored_data[:at], "here")


@given(TIMES, TIMES, st.none() | TIMES)
def test_time_always_increases_and_is_never_further_ahead_than_the_store_and_the_log(
    previous_us: int, own_us: int, store_us: int | None
) -> None:
    time_us = commit_time_us(previous_us, own_us, store_us)
    assert time_us > previous_us
    limit_us = own_us if store_us is None else store_us + CLOCK_TOLERANCE_US
    assert time_us <= max(previous_us + 1, limit_us)
