"""Table properties of other formats, and the effect of each on a lakelog table.

A property that protects, deletes or defines rows is obeyed, or refused with the name of lakelog's own
property. If a property only improves speed, it is kept unchanged, with a warning that it has no effect.
`known` has the list. Pure.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping

from lakelog.catalog.core.schema.foreign_properties.known import (
    CLIENT_SETTINGS,
    FOREIGN,
    KEYS,
    PLACES,
    ForeignProperty,
    PropertyVerdict,
)
from lakelog.log.errors import InvalidInput


class ForeignPropertyWarning(UserWarning):
    """A property of another format is kept and does nothing."""


def foreign_property(name: str) -> ForeignProperty | None:
    """Return the entry of a property's name, or None if no other format has the property."""
    return next((entry for entry in FOREIGN if entry.matches(name)), None)


def refusal(name: str, value: str) -> str | None:
    """Return why a property cannot be set to that value, or None if it can."""
    entry = foreign_property(name)
    if entry is None or entry.verdict is not PropertyVerdict.REFUSED or entry.is_fine(value):
        return None
    return f"the property {name} is {entry.format}'s, and lakelog does not obey it: {entry.says}"


_LEADING = frozenset(f"{CLIENT_SETTINGS} {PLACES}".split())


def leads_clients(name: str) -> bool:
    """Return whether clients of Iceberg would go to other servers or places, or run other code, by a property."""
    entry = foreign_property(name)
    return entry is not None and entry.name in _LEADING


_OF_HUDI = frozenset(("primarykey", "precombinefield", "orderingfields"))
"""Hudi's names without a prefix, in a table that is created USING hudi."""


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
    """Yield a note for each kept property of another format that does nothing."""
    for name, value in properties.items():
        entry = foreign_property(name)
        if entry is None or entry.verdict is not PropertyVerdict.NO_EFFECT or entry.is_fine(value):
            continue
        instead = f"lakelog's word for it is {entry.says}" if entry.says else "leave it out"
        yield f"the property {name} is {entry.format}'s, and has no effect on a lakelog table: {instead}"


def warn_of_foreign(properties: Mapping[str, str]) -> None:
    """Warn of properties of other formats that do nothing. By Python's own rule each text is shown once."""
    for note in notes_on(properties):
        warnings.warn(note, ForeignPropertyWarning, stacklevel=2)


def warn_of_import(note: str) -> None:
    """Warn of a property that an imported table does not have, if nothing else reports it."""
    warnings.warn(note, ForeignPropertyWarning, stacklevel=2)


def kept_of_import(properties: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the properties that an imported table keeps, and notes about the others."""
    refusals = {
        name: text for name, value in properties.items() if (text := refusal(name, value)) is not None
    }
    kept_properties = {name: value for name, value in properties.items() if name not in refusals}
    return kept_properties, [f"{text}; the imported table does not have it" for text in refusals.values()]


def page_rows() -> Iterator[str]:
    """Yield the rows of the page's table, in the order of `FOREIGN`. Names with the same meaning share a
    row."""
    previous: ForeignProperty | None = None
    names: list[str] = []
    for entry in (*FOREIGN, None):
        same = previous is not None and entry is not None and _meaning(previous) == _meaning(entry)
        if previous is not None and not same:
            yield _row(previous, names)
            names = []
        if entry is not None:
            names.append(f"`{entry.name}`")
        previous = entry


def _meaning(known_property: ForeignProperty) -> tuple[object, ...]:
    return (known_property.format, known_property.verdict, known_property.says, known_property.fine)


def _row(known_property: ForeignProperty, names: list[str]) -> str:
    except_for = (
        f", unless it is {' or '.join(f'`{value}`' for value in sorted(known_property.fine))}"
        if known_property.fine
        else ""
    )
    verdict = f"{known_property.verdict.value}{except_for}"
    return f"| {known_property.format} | {', '.join(names)} | {verdict} | {known_property.says} |"
