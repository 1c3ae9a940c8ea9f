"""Random conditions over columns of every type and fields of structs, to compare those that Spark hands down.

They are texts of SQL, the same for every table with these columns. A condition may fail, as a cast may.
"""

from __future__ import annotations

import random

TYPES = {
    "bo": "BOOLEAN", "ti": "TINYINT", "si": "SMALLINT", "i": "INT", "l": "BIGINT", "f": "FLOAT", "x": "DOUBLE",
    "d": "DECIMAL(5, 2)", "dd": "DECIMAL(20, 4)", "s": "STRING", "v": "VARCHAR(4)", "c": "CHAR(4)",
    "cl": "STRING COLLATE UTF8_LCASE", "cr": "STRING COLLATE UTF8_BINARY_RTRIM", "b": "BINARY", "dt": "DATE",
    "ts": "TIMESTAMP", "tn": "TIMESTAMP_NTZ", "tm": "TIME(6)", "ym": "INTERVAL YEAR TO MONTH",
    "ds": "INTERVAL DAY TO SECOND",
}  # fmt: skip

FIELDS = {
    "c": "CHAR(4)", "v": "VARCHAR(4)", "s": "STRING", "i": "INT", "x": "DOUBLE", "bo": "BOOLEAN", "dt": "DATE",
    "d": "DECIMAL(5, 2)", "b": "BINARY",
}  # fmt: skip
"""Of the struct `st`, and of the struct `n` in it."""

INNER = ("c", "i", "dt")

_TEXTS = ["''", "'a'", "'a '", "'ab'", "'abc'", "'abcd'", "'b'", "'B'", "' '", "'_%'", "'5'", "'é'"]

VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["0", "1", "-128", "127", "5"],
    "SMALLINT": ["0", "1", "-32768", "32767", "5"],
    "INT": ["0", "1", "2", "5", "-3", "2147483647", "-2147483648"],
    "BIGINT": ["0", "1", "5", "-3", "4294967297", "9223372036854775807"],
    "FLOAT": ["0.0", "-0.0", "1.5", "0.1", "'NaN'", "'Infinity'", "'-Infinity'"],
    "DOUBLE": ["0.0", "-0.0", "1.5", "0.1", "'NaN'", "'Infinity'", "1e300"],
    "DECIMAL(5, 2)": ["0", "1.25", "-99.99", "999.99", "5"],
    "DECIMAL(20, 4)": ["0", "1.25", "-99.9901", "5", "1234567890123456.7891"],
    "STRING": [*_TEXTS, f"'{'x' * 40}'"],
    "VARCHAR(4)": _TEXTS,
    "CHAR(4)": _TEXTS,
    "STRING COLLATE UTF8_LCASE": _TEXTS,
    "STRING COLLATE UTF8_BINARY_RTRIM": _TEXTS,
    "BINARY": ["X''", "X'00'", "X'61'", "X'6162'", "X'ff'"],
    "DATE": ["DATE'1970-01-01'", "DATE'1969-12-31'", "DATE'2024-02-29'", "DATE'1500-01-01'"],
    "TIMESTAMP": ["TIMESTAMP'1970-01-01 00:00:00Z'", "TIMESTAMP'1969-12-31 23:59:59.999999Z'",
                  "TIMESTAMP'2024-02-29 12:34:56.789Z'", "TIMESTAMP'2024-02-29 00:00:00Z'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ'1970-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-02-29 12:34:56.789'",
                      "TIMESTAMP_NTZ'2024-02-29 00:00:00'"],
    "TIME(6)": ["TIME'00:00:00'", "TIME'12:34:56.789'", "TIME'23:59:59.999999'"],
    "INTERVAL YEAR TO MONTH": ["INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-0-1' YEAR TO MONTH", "INTERVAL '0' YEAR"],
    "INTERVAL DAY TO SECOND": ["INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '0' DAY", "INTERVAL '-1' HOUR"],
}  # fmt: skip
"""Values of columns of each type; literals that a column is compared with are of them, too."""

OTHERS = [
    "0", "1", "5", "1.5", "1.25BD", "0.1D", "2147483648", "-129", "'1'", "'5 '", "'a'", "'abcdef'", "'a     '", "true",
    "CAST(0.1 AS FLOAT)", "DATE'2024-02-29'", "TIMESTAMP'2024-02-29 00:00:00Z'", "'2024-02-29'", "X'61'", "NULL",
    "CAST('a' AS CHAR(6))", "CAST('a' AS VARCHAR(3))", "'A' COLLATE UTF8_LCASE", "lower('A')", "concat('a', '')",
]  # fmt: skip
"""Values of whatever type, for a column of another one."""

_PATTERNS = ["a", "a%", "%b", "%a%", "a_", "%", "", "a   ", "ab  %", "% ", "%b  ", "A%", r"\\_%", "_%", "%cd"]
_COMPARISONS = ["=", "=", "<", "<=", ">", ">=", "<>", "<>", "<=>"]


def columns() -> str:
    """Return the columns of a table, for its CREATE."""
    inner = ", ".join(f"{name}: {FIELDS[name]}" for name in INNER)
    fields = ", ".join(f"{name}: {type}" for name, type in FIELDS.items())
    flat = ", ".join(f"{name} {type}" for name, type in TYPES.items())
    return f"k INT, u INT, {flat}, st STRUCT<{fields}, n: STRUCT<{inner}>>, ar ARRAY<CHAR(2)>, m MAP<STRING, INT>"


def row(chance: random.Random, k: int) -> str:
    """Return a row of these columns, for VALUES."""

    def of(type: str) -> str:
        text = "NULL" if chance.random() < 0.2 else chance.choice(VALUES[type])
        return f"CAST({text} AS {'STRING' if 'CHAR' in type else type})"

    inner = ", ".join(f"'{name}', {of(FIELDS[name])}" for name in INNER)
    nested_text = "NULL" if chance.random() < 0.2 else f"named_struct({inner})"
    fields = ", ".join(f"'{name}', {of(type)}" for name, type in FIELDS.items())
    struct = "NULL" if chance.random() < 0.2 else f"named_struct({fields}, 'n', {nested_text})"
    array = chance.choice(["NULL", "array()", "array('a')", "array('ab', NULL)"])
    map = chance.choice(["NULL", "map()", "map('a', 1)", "map('a', NULL, 'b', 2)"])
    flat = ", ".join(of(type) for type in TYPES.values())
    return f"({k}, {k % 3}, {flat}, {struct}, {array}, {map})"


def condition(chance: random.Random, depth: int = 0) -> str:
    match chance.randrange(8 if depth < 3 else 4):
        case 4:
            return f"NOT ({condition(chance, depth + 1)})"
        case 5:
            test = chance.choice(["IS TRUE", "IS NOT TRUE", "<=> NULL", "<=> true"])
            return f"({condition(chance, depth + 1)}) {test}"
        case 6 | 7:
            word = chance.choice(["AND", "OR"])
            return f"(({condition(chance, depth + 1)}) {word} ({condition(chance, depth + 1)}))"
        case _:
            return _one_text(chance)


def _reference(chance: random.Random) -> tuple[str, str]:
    """Return a column, or a field of a struct, and its type. Texts come more often than others."""
    known_types = [*TYPES.items(), *((f"st.{name}", type) for name, type in FIELDS.items())]
    known_types += [(f"st.n.{name}", FIELDS[name]) for name in INNER]
    texts = [each_pair for each_pair in known_types if "CHAR" in each_pair[1] or each_pair[1] == "STRING"]
    return chance.choice(texts if chance.random() < 0.45 else known_types)


def _is_text(type: str) -> bool:
    return "CHAR" in type or "STRING" in type


def _value(chance: random.Random, type: str) -> str:
    if chance.random() < 0.08:
        return "NULL"
    if chance.random() < 0.15:
        return chance.choice(OTHERS)
    value = chance.choice(VALUES[type])
    if type in ("FLOAT", "DOUBLE") and (value[0] == "'" or chance.random() < 0.5):
        return f"CAST({value} AS {type})"
    return value


def _one_text(chance: random.Random) -> str:
    name, type = _reference(chance)
    if chance.random() < 0.03:
        return chance.choice(_OF_COLUMNS)
    match chance.randrange(12):
        case 0 | 1:
            name, type = _made(chance, name, type)
        case 2:
            transformed_text = _transformed_text(chance, name, type)
            if transformed_text is not None:
                return transformed_text
        case 3 | 4 | 5 if _is_text(type):
            return _text_test(chance, name)
    return _test(chance, name, type)


def _test(chance: random.Random, name: str, type: str) -> str:
    match chance.randrange(6):
        case 0:
            return f"{name} IS {chance.choice(['', 'NOT '])}NULL"
        case 1:
            values = ", ".join(_value(chance, type) for _ in range(chance.choice([1, 2, 3, 12])))
            return f"{name} {chance.choice(['', 'NOT '])}IN ({values})"
        case 2:
            ends = f"{_value(chance, type)} AND {_value(chance, type)}"
            return f"{name} {chance.choice(['', 'NOT '])}BETWEEN {ends}"
        case 3 if type == "BOOLEAN":
            return name
    sides = [name, _value(chance, type)]
    if chance.random() < 0.1:
        sides.reverse()
    return f"{sides[0]} {chance.choice(_COMPARISONS)} {sides[1]}"


def _text_test(chance: random.Random, name: str) -> str:
    match chance.randrange(4):
        case 0:
            word = chance.choice(["startswith", "endswith", "contains"])
            return f"{word}({name}, {chance.choice(_TEXTS)})"
        case 1:
            return f"{name} {chance.choice(['RLIKE', 'ILIKE'])} '{chance.choice(['a', 'A%', '^a', ' '])}'"
    return f"{name} {chance.choice(['', 'NOT '])}LIKE '{chance.choice(_PATTERNS)}'"


def _made(chance: random.Random, name: str, type: str) -> tuple[str, str]:
    """Return an expression of a column, and the type of what it is compared with."""
    found_pairs = [
        (f"coalesce({name}, {chance.choice(VALUES[type])})", type), (f"CAST({name} AS STRING)", "STRING"),
        (f"nullif({name}, {chance.choice(VALUES[type])})", type), (f"({name})", type),
        (f"IF({name} IS NULL, 'n', 'v')", "STRING"),
    ]  # fmt: skip
    if _is_text(type):
        texts = ["upper({})", "trim({})", "rtrim({})", "concat({}, '')", "substring({}, 1, 1)", "left({}, 2)",
                "rpad({}, 4, ' ')", "CAST({} AS VARCHAR(4))", "{} COLLATE UTF8_BINARY", "{} || ' '"]  # fmt: skip
        found_pairs += [(text.format(name), "STRING") for text in texts]
        found_pairs += [
            (f"{name} COLLATE UTF8_LCASE", "STRING"),
            (f"length({name})", "INT"),
            (f"TRY_CAST({name} AS INT)", "INT"),
            (f"CAST({name} AS BINARY)", "BINARY"),
            (f"octet_length({name})", "TINYINT"),
        ]
    if type in ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(5, 2)", "DECIMAL(20, 4)", "FLOAT", "DOUBLE"):
        found_pairs += [
            (f"try_add({name}, 1)", "INT"), (f"{name} % 2", "INT"), (f"CAST({name} AS DOUBLE)", "DOUBLE"),
            (f"TRY_CAST({name} AS INT)", "INT"), (f"TRY_CAST({name} AS TINYINT)", "TINYINT"),
            (f"TRY_CAST({name} AS DECIMAL(12, 1))", "DECIMAL(5, 2)"), (f"CAST({name} AS FLOAT)", "FLOAT"),
            (f"CAST({name} AS BOOLEAN)", "BOOLEAN"), (f"- {name}", type), (f"sign({name})", "INT"),
        ]  # fmt: skip
    if type in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        found_pairs += [
            (f"year({name})", "INT"), (f"CAST({name} AS DATE)", "DATE"), (f"CAST({name} AS TIMESTAMP)", "TIMESTAMP"),
            (f"CAST({name} AS TIMESTAMP_NTZ)", "TIMESTAMP_NTZ"), (f"date_trunc('MONTH', {name})", "TIMESTAMP"),
            (f"date_add({name}, 1)", "DATE"), (f"extract(MONTH FROM {name})", "INT"),
        ]  # fmt: skip
    return chance.choice(found_pairs)


def _transformed_text(chance: random.Random, name: str, type: str) -> str | None:
    number = chance.choice([1, 2, 3, 4, 10])
    found_pairs = []
    if "COLLATE" not in type and (
        _is_text(type) or type in ("TINYINT", "SMALLINT", "INT", "BIGINT", "BINARY") or "DECIMAL" in type
    ):
        found_pairs += [(f"lake.truncate({number}, {name})", type), (f"lake.bucket({number}, {name})", "INT")]
    if type in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        found_pairs += [(f"lake.{each_name}({name})", "INT") for each_name in ("years", "months")]
        found_pairs += [(f"lake.days({name})", "DATE"), (f"lake.bucket({number}, {name})", "INT")]
    if type in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        found_pairs.append((f"lake.hours({name})", "INT"))
    if not found_pairs:
        return None
    text, result = chance.choice(found_pairs)
    if result == "INT" and "bucket" not in text and chance.random() < 0.7:
        return f"{text} {chance.choice(_COMPARISONS)} {chance.choice([54, -1, 0, 649, 474756, 17])}"
    if "truncate" in text and _is_text(type) and chance.random() < 0.3:
        return _text_test(chance, text)
    return _test(chance, text, result)


_OF_COLUMNS = [
    "c = v", "c = s", "c <> s", "st.c = c", "st.c = st.v", "v = s", "i = l", "i < l", "x = f", "d = dd", "ts > tn",
    "array_contains(ar, 'a')", "ar[0] = 'ab'", "try_element_at(m, 'a') = 1", "size(ar) > 0", "st = st", "ar IS NULL",
    "m IS NOT NULL", "st IS NULL", "st.n IS NULL", "k = 1 OR rand(1) < 0", "dt = ts", "cl = s", "cl = cr", "k > 3",
    "k IN (1, 2, 5)", "i IN (l, 5)", "greatest(i, l) > 1", "hash(c) > 0", "true", "NULL", "1 = 2", "bo = (i > 1)",
]  # fmt: skip
