"""Types of columns and literals of them. Each literal is an expression of exactly the type.

Pools are small, so that values meet each other in joins and groups, and have what lies at the edges. Floating point
stands in no struct, array or map: the order of zeros and the bits of NaN would make answers ambiguous there. Texts
with a collation differ by case, and by blanks at their end, so that some are equal; their order is not that of bytes.
"""

from __future__ import annotations

import random
import re

_CASES = [
    "''",
    "'a'",
    "'A'",
    "'ab'",
    "'AB'",
    "'b'",
    "'B'",
    "'Z'",
    "'z'",
    "'ä'",
    "'Ä'",
    f"'{'x' * 40}'",
    f"'{'X' * 40}'",
]

POOLS: dict[str, list[str]] = {
    "boolean": ["true", "false"],
    "tinyint": ["0", "1", "-128", "127", "5"],
    "smallint": ["0", "1", "-32768", "32767", "5"],
    "int": ["0", "1", "2", "3", "5", "-3", "100", "2147483647", "-2147483648"],
    "bigint": ["0", "1", "2", "5", "-3", "4294967297", "9223372036854775807", "-9223372036854775808"],
    "float": ["0.0", "-0.0", "1.5", "-2.25", "'NaN'", "'Infinity'", "'-Infinity'", "3.4e38"],
    "double": ["0.0", "-0.0", "1.5", "-2.25", "'NaN'", "'Infinity'", "'-Infinity'", "1e300", "0.1"],
    "decimal(5,2)": ["0", "1.25", "-99.99", "999.99", "5"],
    "decimal(12,2)": ["0", "1.25", "-99.99", "999.99", "9999999999.99"],
    "decimal(20,4)": ["0", "1.2500", "-99.9901", "5", "1234567890123456.7891"],
    "string": ["''", "'a'", "'ab'", "'abc'", "'b'", "'b '", "'B'", "'ä'", "'_%'", "'5'", "'z😀'", f"'{'x' * 40}'"],
    "varchar(12)": ["''", "'a'", "'ab'", "'abc'", "'b'", "'b '", "'5'"],
    "varchar(20)": ["''", "'a'", "'ab'", "'abc'", "'b'", "'b '", "'twelve and more'"],
    "char(4)": ["'a   '", "'ab  '", "'b   '", "'    '", "'abcd'"],
    "string collate UTF8_LCASE": _CASES,
    "string collate UNICODE_CI": _CASES,
    "string collate UTF8_BINARY_RTRIM": ["''", "' '", "'a'", "'a '", "'ab'", "'ab  '", "'b'", "'b '", "'B'"],
    "binary": ["X''", "X'00'", "X'61'", "X'6162'", "X'ff'"],
    "date": ["DATE'1970-01-01'", "DATE'1969-12-31'", "DATE'2024-02-29'", "DATE'2024-03-01'", "DATE'1582-10-15'",
             "DATE'1500-01-01'", "DATE'2500-12-31'"],
    "timestamp": ["TIMESTAMP'1970-01-01 00:00:00'", "TIMESTAMP'1969-12-31 23:59:59.999999'",
                  "TIMESTAMP'2024-02-29 12:34:56.789'", "TIMESTAMP'2024-02-29 13:00:00'",
                  "TIMESTAMP'2024-03-01 00:00:00'", "TIMESTAMP'1850-06-01 01:02:03'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ'1970-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-02-29 12:34:56.789'",
                      "TIMESTAMP_NTZ'2024-03-01 00:00:00'", "TIMESTAMP_NTZ'1850-06-01 01:02:03'"],
}  # fmt: skip

NESTED = [
    "array<int>",
    "array<string>",
    "map<string,int>",
    "struct<x:int,y:string>",
    "struct<x:bigint,y:string,z:date>",
    "array<struct<x:int,y:string>>",
    "struct<x:int,s:struct<u:int,v:boolean>>",
    "struct<x:int,y:string collate UTF8_LCASE>",
    "array<string collate UNICODE_CI>",
]

FLAT = list(POOLS)
WIDER = {
    "tinyint": ["smallint", "int", "bigint"],
    "smallint": ["int", "bigint"],
    "int": ["bigint"],
    "float": ["double"],
    "decimal(5,2)": ["decimal(12,2)", "decimal(20,4)"],
    "varchar(12)": ["varchar(20)", "string"],
}
COLLATIONS = [
    "string",
    "string collate UTF8_LCASE",
    "string collate UNICODE_CI",
    "string collate UTF8_BINARY_RTRIM",
]


def literal(chance: random.Random, type: str, nulls: float = 0.15) -> str:
    """Return an expression of the type, NULL at times."""
    if chance.random() < nulls:
        return f"CAST(NULL AS {type})"
    if type in POOLS:
        return typed(chance.choice(POOLS[type]), type)
    inner, outer = nested(type)
    count = chance.choice([0, 1, 2, 3])
    match outer:
        case "array":
            items = ", ".join(literal(chance, inner[0][1], nulls) for _ in range(count))
            return f"CAST(array({items}) AS {type})"
        case "map":
            keys = chance.sample(["a", "b", "ab", ""], count)
            pairs = ", ".join(f"'{key}', {literal(chance, inner[1][1], nulls)}" for key in keys)
            return f"CAST(map({pairs}) AS {type})"
        case _:
            return struct({name: literal(chance, text, nulls) for name, text in inner}, type)


def struct(fields: dict[str, str], type: str) -> str:
    parts = ", ".join(f"'{name}', {text}" for name, text in fields.items())
    return f"CAST(named_struct({parts}) AS {type})"


def typed(text: str, type: str) -> str:
    # A literal that has the type by itself is pushed down as users write it.
    if type in ("boolean", "int", "string", "binary", "date", "timestamp", "timestamp_ntz"):
        return text
    if type == "double" and text[0] != "'":
        return f"{text}D"
    if type == "bigint" and len(text) < 19:
        return f"{text}L"
    if re.match("varchar|char", type):
        return text
    return f"CAST({text} AS {type})"


def nested(type: str) -> tuple[list[tuple[str, str]], str]:
    """Return what an array, a map or a struct is made of, by name, and which of the three it is."""
    outer, _, remaining_text = type.partition("<")
    fields = split_texts(remaining_text.removesuffix(">"))
    if outer == "struct":
        return [(name, of) for name, _, of in (field.partition(":") for field in fields)], outer
    return [(str(place), field) for place, field in enumerate(fields)], outer


def split_texts(text: str) -> list[str]:
    """Split a list of types at its commas, but not at those inside of one."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return [*found, text[start:]]


def is_nested(type: str) -> bool:
    return "<" in type


def is_orderable(type: str) -> bool:
    return "map<" not in type


def is_real(type: str) -> bool:
    return type in ("float", "double")


def is_text(type: str) -> bool:
    return type == "string" or type.startswith(("varchar", "char"))


def is_collated(type: str) -> bool:
    """Return whether values are texts that may be equal though they are different ones."""
    return type.startswith("string collate ")


def recollated(text: str, type: str) -> str:
    """Return the literal of a text for another collation."""
    plain = re.sub(r"^CAST\((.*) AS string collate \w+\)$", r"\1", text, flags=re.S)
    return typed(plain, type)


def alike(text: str, type: str) -> str:
    """Return the literal of another text that the collation holds equal to this one, if there is one."""
    change = (
        (lambda quoted: f"{quoted[0][:-1]} '") if "RTRIM" in type else lambda quoted: quoted[0].swapcase()
    )
    return re.sub(r"'[^']*'", change, text)


def is_whole(type: str) -> bool:
    return type in ("tinyint", "smallint", "int", "bigint")


def is_decimal(type: str) -> bool:
    return type.startswith("decimal")
