"""Identifiers: random, so that nobody has to agree with anybody and no clock is involved."""

import base64
import os

ID_LENGTH = 26


def new_id() -> str:
    """Return 128 random bits as 26 characters of lowercase base32."""
    return base64.b32encode(os.urandom(16))[:ID_LENGTH].decode("ascii").lower()
