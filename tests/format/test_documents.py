"""Every event has an example on the site, and the golden files are as its schemas say."""

from __future__ import annotations

import copy
import functools
import json
from typing import Any

from jsonschema import Draft202012Validator

from lakelog.catalog.core.state.events import NamespaceEvent, TableEvent
from programs import format_examples


def test_every_event_is_in_a_golden_warehouse_and_in_the_examples() -> None:
    known_tags = {*format_examples.tags(NamespaceEvent), *format_examples.tags(TableEvent)}
    assert {stored_event.value["event"] for stored_event in format_examples.events()} == known_tags
    page = format_examples.documents()["examples.md"]
    assert {tag for tag in known_tags if f"## `{tag}`" in page} == known_tags


def test_each_example_of_a_log_is_another_object() -> None:
    page = format_examples.documents()["examples.md"]
    objects = page.partition("# Events of namespaces")[0].split("\n## ")[1:]
    assert {example.partition("\n")[0] for example in objects} == format_examples.OF_THE_LOG.keys()
    assert len({example.partition("```json")[2] for example in objects}) == len(objects)


@functools.cache
def validator(name: str, definition: str = "") -> Draft202012Validator:
    """Return the schema in the document, or one of its definitions, as it is published."""
    schema = json.loads(format_examples.documents()[name])
    if definition:
        schema = {"$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"}
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_every_golden_object_of_a_log_is_as_the_schema_says() -> None:
    schema, checked_number = validator("log.schema.json"), 0
    for stored_logs in (*format_examples.of_logs(), *format_examples.of_warehouses()):
        if stored_logs.path.parent.name != "_cut":
            schema.validate(stored_logs.value)
            checked_number += 1
    assert checked_number > 150


def test_every_golden_event_state_and_cut_is_as_the_schema_says() -> None:
    schema = validator("catalog.schema.json")
    for stored_event in format_examples.events():
        schema.validate(stored_event.value)
    for kind, definition in (("namespace", "NamespaceState"), ("table", "TableState")):
        states = list(format_examples.states(kind))
        assert states
        for stored_event in states:
            validator("catalog.schema.json", definition).validate(stored_event.value)
    stored_objects, of_a_namespace = format_examples.cuts()
    for cut in (stored_objects, of_a_namespace):
        validator("catalog.schema.json", "CutVersions").validate(cut.value)


def broken(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the object with a member that no format has, and without one that it needs."""
    more, less = {**value, "unheard": 1}, copy.deepcopy(value)
    less.pop("event", None) or less.pop("kind")
    return [more, less]


def test_the_schemas_refuse_what_readers_refuse() -> None:
    for name, logs in (
        ("log.schema.json", format_examples.of_logs()),
        ("catalog.schema.json", format_examples.events()),
    ):
        schema = validator(name)
        for stored_objects in logs:
            assert not [each for each in broken(stored_objects.value) if schema.is_valid(each)], (
                stored_objects.source
            )


def test_json_in_the_examples_is_that_of_the_files() -> None:
    value = {"a": ["x" * 60, "y" * 60, {"b": {}, "c": []}], "d": None, "é": "ü"}
    assert json.loads(format_examples.pretty(value)) == value
    assert max(map(len, format_examples.pretty(value).splitlines())) <= format_examples.WIDTH


def test_lists_of_files_are_in_the_examples_as_rows() -> None:
    page = format_examples.documents()["examples.md"]
    titles = [
        "An entry with deleted rows, in an object", "An entry of another writer's file", "A manifest",
        "A sidecar of added files", "A sidecar of removed files", "A list of removed paths",
        "A table's state, with packs and removed paths", "A leaf of a pack: the part `files`",
        "A leaf of a pack: the part `1`", "A leaf of a pack: the part `rest`", "`bounds` of that state",
    ]  # fmt: skip
    for title in titles:
        [_, text_after] = page.split(f"\n## {title}\n")
        example = text_after.partition("\n## ")[0]
        assert example.startswith("\n```json\n{") or "\n| column | type | row 1 |" in example
