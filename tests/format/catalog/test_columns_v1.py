"""The words of clustering, generated columns, collations and defaults, as they stand in logs."""

from __future__ import annotations

import msgspec

from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import AtomicType, Default, Field, Generated, ListType, TypedValue
from lakelog.catalog.core.state.events import ClusteringChanged, SchemaChanged, TableEvent, encode

CLUSTERED = '[{"event":"clustering-changed","columns":[3,1]}]'
GENERATED = (
    '[{"event":"schema-changed","schema":{"fields":[{"id":1,"name":"a","physical":"a_1","type":{"kind":"atomic",'
    '"name":"integer"}},{"id":2,"name":"b","physical":"b_2","type":{"kind":"atomic","name":"integer"},'
    '"generated":{"sql":"a + 1","columns":["a"]}}],"last_id":2}}]'
)
COLLATED = (
    '[{"event":"schema-changed","schema":{"fields":[{"id":1,"name":"a","physical":"a_1","type":{"kind":"atomic",'
    '"name":"string collate de_CI_AI_RTRIM"}},{"id":2,"name":"b","physical":"b_2","type":{"kind":"list","element_id":3,'
    '"element":{"kind":"atomic","name":"string collate UTF8_LCASE"}}}],"last_id":3}}]'
)
DEFAULTS = (
    '[{"event":"schema-changed","schema":{"fields":[{"id":1,"name":"a","physical":"a_1","type":{"kind":"atomic",'
    '"name":"timestamp_ntz"},"default":{"current":"now()","exists":{"type":"date","value":20454}}},{"id":2,"name":"b",'
    '"physical":"b_2","type":{"kind":"atomic","name":"char(3)"},"default":{"exists":{"type":"string","value":"x  "}}}],'
    '"last_id":2}}]'
)


def field(id: int, name: str, generated: Generated | None = None) -> Field:
    return Field(id=id, name=name, physical=f"{name}_{id}", type=AtomicType("integer"), generated=generated)


def test_events_are_written_and_read_as_they_always_were() -> None:
    schema = Schema(fields=(field(1, "a"), field(2, "b", Generated(sql="a + 1", columns=("a",)))), last_id=2)
    name = AtomicType("string collate de_CI_AI_RTRIM")
    texts = ListType(element_id=3, element=AtomicType("string collate UTF8_LCASE"))
    collated_fields = (
        Field(id=1, name="a", physical="a_1", type=name),
        Field(id=2, name="b", physical="b_2", type=texts),
    )
    of_time, of_text = TypedValue(type="date", value=20_454), TypedValue(type="string", value="x  ")
    defaults = (
        Field(
            id=1,
            name="a",
            physical="a_1",
            type=AtomicType("timestamp_ntz"),
            default=Default(current="now()", exists=of_time),
        ),
        Field(id=2, name="b", physical="b_2", type=AtomicType("char(3)"), default=Default(exists=of_text)),
    )
    for event, text in (
        (SchemaChanged(schema=Schema(fields=defaults, last_id=2)), DEFAULTS),
        (SchemaChanged(schema=Schema(fields=collated_fields, last_id=3)), COLLATED),
        (ClusteringChanged(columns=(3, 1)), CLUSTERED),
        (SchemaChanged(schema=schema), GENERATED),
    ):
        assert msgspec.json.encode(encode([event])).decode() == text
        assert msgspec.convert(msgspec.json.decode(text), list[TableEvent]) == [event]
