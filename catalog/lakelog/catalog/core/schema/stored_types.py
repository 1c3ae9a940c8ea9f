"""Registration of stored types with their decoder when they are defined.

msgspec analyses a type when it is first decoded, and two threads that do so at once crash the process.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from lakelog.log import Json
from lakelog.log.decoding import is_unknown, said
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, UnsupportedFormat
from lakelog.log.grammar import shortened

T = TypeVar("T")


def ready(*types: Any) -> None:
    """Have the decoder analyse `types` at import, because modules are imported by a single thread."""
    for type in types:
        msgspec.json.Decoder(type)


def state_of(root: Json, stored: type[T], kind: str, other: str) -> T:
    """Return the state of a log of this kind from a snapshot.

    Raises InvalidInput if it may be the state of a log of the `other` kind. Raises UnsupportedFormat for
    unknown members, and FormatError for invalid values of members.
    """
    try:
        return msgspec.convert(root, stored, str_keys=True)
    except InvalidInput as error:
        # A type or a transform that does not exist here.
        raise _unknown(kind, error) from error
    except LakelogError as error:
        raise FormatError(f"a snapshot of the {kind} cannot be read ({shortened(error.message)})") from error
    except (msgspec.ValidationError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        fields = msgspec.structs.fields(stored)  # type: ignore[arg-type]
        if (
            not isinstance(root, dict)
            or not {field.name for field in fields if field.required} <= root.keys()
        ):
            raise InvalidInput(
                f"the log there is not a {kind}'s, but perhaps a {other}'s ({said(error)})"
            ) from None
        unknown = shortened(", ".join(sorted(root.keys() - {field.name for field in fields})))
        if unknown:
            raise UnsupportedFormat(
                f"a snapshot of the {kind} has {unknown}, which this version of lakelog does not know: upgrade "
                "lakelog to read it"
            ) from None
        if is_unknown(error):
            raise _unknown(kind, error) from None
        raise FormatError(
            f"a snapshot of the {kind} cannot be read ({said(error)}): it was written by a faulty client, or by a "
            "newer one: upgrade lakelog, or find out which client wrote it"
        ) from None


def _unknown(kind: str, error: Exception) -> UnsupportedFormat:
    return UnsupportedFormat(
        f"a snapshot of the {kind} has something that this version of lakelog does not know ({said(error)}): upgrade "
        "lakelog to read it"
    )
