"""Registering types of stored objects with their decoder when they are defined.

msgspec analyses a type when it is first decoded, and two threads that do so at once crash the process.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from lakelog.log import Json
from lakelog.log.decoding import said
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, UnsupportedFormat
from lakelog.log.grammar import shortened

T = TypeVar("T")


def ready(*types: Any) -> None:
    """Have the decoder analyse `types` now: modules are imported by one thread only."""
    for each in types:
        msgspec.json.Decoder(each)


def state_of(root: Json, stored: type[T], kind: str, other: str) -> T:
    """Return the state of a log of this kind, as a snapshot has it.

    InvalidInput where it may be the state of a log of the `other` kind; UnsupportedFormat for members that are not
    known here, FormatError for invalid values of members.
    """
    try:
        return msgspec.convert(root, stored, str_keys=True)
    except LakelogError as error:
        raise FormatError(f"a snapshot of the {kind} cannot be read ({shortened(error.message)})") from error
    except (msgspec.ValidationError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        fields = msgspec.structs.fields(stored)  # type: ignore[arg-type]
        if not isinstance(root, dict) or not {each.name for each in fields if each.required} <= root.keys():
            raise InvalidInput(
                f"the log there is not a {kind}'s, but perhaps a {other}'s ({said(error)})"
            ) from None
        unknown = shortened(", ".join(sorted(root.keys() - {each.name for each in fields})))
        if unknown:
            raise UnsupportedFormat(
                f"a snapshot of the {kind} has {unknown}, which this version of lakelog does not know: upgrade "
                "lakelog to read it"
            ) from None
        raise FormatError(
            f"a snapshot of the {kind} cannot be read ({said(error)}): it was written by a faulty client, or by a "
            "newer one: upgrade lakelog, or find out which client wrote it"
        ) from None
