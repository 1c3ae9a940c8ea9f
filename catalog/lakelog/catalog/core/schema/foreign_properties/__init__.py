"""Table properties of other formats, and what becomes of each on a lakelog table.

A property that protects rows, deletes them or says what they are is obeyed, or refused with lakelog's word for it. One
that only makes things quicker is kept as it is, with a warning that it does nothing. `known` has the list. Pure.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping

from lakelog.catalog.core.schema.foreign_properties.known import FOREIGN, KEYS, ForeignProperty, Verdict
from lakelog.log.errors import InvalidInput


class ForeignPropertyWarning(UserWarning):
    """A property of another format is kept and does nothing."""


def foreign_property(name: str) -> ForeignProperty | None:
    """Return what is known of a property's name; None for one that no other format has."""
    return next((each for each in FOREIGN if each.matches(name)), None)


def refusal(name: str, value: str) -> str | None:
    """Return why a property cannot be set to that value; None if it can."""
    known = foreign_property(name)
    if known is None or known.verdict is not Verdict.REFUSED or known.is_fine(value):
        return None
    return f"the property {name} is {known.format}'s, and lakelog does not obey it: {known.says}"


_OF_HUDI = frozenset(("primarykey", "precombinefield", "orderingfields"))
"""Names without a prefix: they are Hudi's for a table that is created USING hudi."""


def check_for_provider(properties: Mapping[str, str], provider: str | None) -> None:
    """Raise InvalidInput for a property by which the provider of a statement would choose among rows."""
    for name in properties:
        if provider is not None and provider.lower() == "hudi" and name.lower() in _OF_HUDI:
            raise InvalidInput(f"the property {name} is Hudi's, and lakelog does not obey it: {KEYS}")


def check_foreign(properties: Mapping[str, str]) -> None:
    """Raise InvalidInput for a property of another format that must not be ignored."""
    for name, value in properties.items():
        if (text := refusal(name, value)) is not None:
            raise InvalidInput(text)


def notes_on(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield what is to be said about properties of other formats that are kept and do nothing."""
    for name, value in properties.items():
        known = foreign_property(name)
        if known is None or known.verdict is not Verdict.NO_EFFECT or known.is_fine(value):
            continue
        instead = f"lakelog's word for it is {known.says}" if known.says else "leave it out"
        yield f"the property {name} is {known.format}'s, and has no effect on a lakelog table: {instead}"


def warn_of_foreign(properties: Mapping[str, str]) -> None:
    """Warn of properties of other formats that do nothing, by Python's own rule once for each text."""
    for note in notes_on(properties):
        warnings.warn(note, ForeignPropertyWarning, stacklevel=2)


def warn_of_import(note: str) -> None:
    """Warn of what an imported table does not have, where nothing else reports it."""
    warnings.warn(note, ForeignPropertyWarning, stacklevel=2)


def kept_of_import(properties: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the properties that an imported table keeps, and what is to be said of the others."""
    dropped = {name: text for name, value in properties.items() if (text := refusal(name, value)) is not None}
    kept = {name: value for name, value in properties.items() if name not in dropped}
    return kept, [f"{text}; the imported table does not have it" for text in dropped.values()]


def page_rows() -> Iterator[str]:
    """Yield the rows of the page's table, in the order of `FOREIGN`; names of one meaning are in one row."""
    before: ForeignProperty | None = None
    names: list[str] = []
    for each in (*FOREIGN, None):
        same = before is not None and each is not None and _meaning(before) == _meaning(each)
        if before is not None and not same:
            yield _row(before, names)
            names = []
        if each is not None:
            names.append(f"`{each.name}`")
        before = each


def _meaning(known: ForeignProperty) -> tuple[object, ...]:
    return (known.format, known.verdict, known.says, known.fine)


def _row(known: ForeignProperty, names: list[str]) -> str:
    except_for = (
        f", unless it is {' or '.join(f'`{value}`' for value in sorted(known.fine))}" if known.fine else ""
    )
    return f"| {known.format} | {', '.join(names)} | {known.verdict.value}{except_for} | {known.says} |"
