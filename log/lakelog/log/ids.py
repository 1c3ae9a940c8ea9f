"""Identifiers: random, so that clients need neither to agree nor to have a clock."""

import os

ID_LENGTH = 26
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = tuple(range(0, ID_LENGTH * 5, 10))


def new_id() -> str:
    """Return 130 random bits as 26 characters of lowercase base32."""
    bits = int.from_bytes(os.urandom(17), "big")
    return "".join([_PAIRS[bits >> shift & 1023] for shift in _SHIFTS])
