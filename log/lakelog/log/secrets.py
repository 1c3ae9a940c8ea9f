"""Secrets in texts and properties, and the masks in their place. Pure.

Data in a log stays for ever, and messages are copied into tickets. So before a text is kept or shown, secrets
in it are masked: values whose names look secret, and keys in URLs. Names are the only clue. A secret whose
name and value do not look secret is not recognized.

One rule: masked text does not change if it is masked again. This module must not know the text's purpose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

MASK = "***"

LEVELS_MAX = 256
"""Levels of facts that are looked at. A commit with more levels is refused anyway (`decoding.DEPTH_MAX`)."""

_WORDS = frozenset(
    {
        *("secret", "secrets", "password", "passwords", "passwd", "pwd", "passphrase", "token", "tokens"),
        *("credential", "credentials", "signature", "sig", "sas", "authorization", "auth"),
        *("apikey", "accesskey", "secretkey", "privatekey", "keyid"),
    }
)
_PAIRS = frozenset(
    {"access", "account", "api", "private", "secret", "encryption", "shared", "client"}
)  # fmt: skip
"""A name of one of these words and "key" is secret."""
_ANYWHERE = ("secret", "password", "passwd", "passphrase", "credential", "accesskey", "privatekey", "apikey")
_MAYBE = re.compile("secret|pass|pwd|token|cred|sig|sas|auth|key", re.IGNORECASE)
"""Each of the words above contains a match."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# Each of these takes linear time for any text. Names match only from their beginnings, and the text before an
# @ has a limited length.
_NAME = r"[\w.\-]+"
_USER = re.compile(
    r"((?:abfss?|wasbs?)?://)([^\s'\"`@]{0,1024}+(?:@[^\s'\"`@/?#]{0,256}+(?=@))*+)@", re.IGNORECASE
)
_CONTAINERS = ("abfs://", "abfss://", "wasb://", "wasbs://")
"""In URLs of these schemes, a container precedes the @."""
_ENCODED_USER = re.compile(r"(%3A%2F%2F)((?:(?!%40)[^\s'\"`@]){0,1024}+)%40", re.IGNORECASE)
_QUERY = re.compile(r"([?&;])([\w.%\-]+)(=)([^&\s'\"`#;)]*)")
_ENCODED_QUERY = re.compile(r"(%3F|%26|%3B)([\w.\-]+)(%3D)((?:(?!%26|%3B|%23)[^&\s'\"`#;)])*)", re.IGNORECASE)
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")
_KEY_FILE = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).*?(-----END|\Z)", re.DOTALL)
_HEADER = re.compile(
    r"(authorization['\"]?\s*[:=]\s*['\"]?(?:basic|bearer|digest|token)\s+)([^\s'\",]+)", re.IGNORECASE
)

_PROSE = re.compile(
    r"(?!(?:basic|bearer|digest|token)\b)[A-Za-z]+[ ]+(?:[`'\"]|[A-Za-z]+(?![\w+/=\-]|\.\w))", re.IGNORECASE
)
"""The text after the colon of a message that quotes a table's or column's name: words, not a value."""

_NAMED = re.compile(
    rf"""(?:(?<!\\)(?P<quote>\\*["'`])(?P<quoted>{_NAME})(?P=quote)|(?<![\w.\-])(?P<name>{_NAME}))
        (?:\s*(?:=>|->|:=|==?)\s*|(?<=["'])\s*(?P<json>:)\s*|(?<=`)\s*:\s*(?=["'])|\s+(?=(?:[rR]?["'])))""",
    re.VERBOSE,
)
_VALUE = re.compile(
    r"""(?P<escaped>\\+["'])(?:(?!(?P=escaped)).)*(?:(?P=escaped)|\Z)
      | [rR](?:"[^"]*"?|'[^']*'?)
      | [bBeEnNuUxX]?(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.|'')*'?)
      | `[^`]*`?
      | (?P<dollars>\$[A-Za-z]*\$).*?(?:(?P=dollars)|\Z)
      | (?P<bare>(?:(?i:basic|bearer|digest)[ ]+)?[^\s,;&)}\]"'`]+)""",
    re.VERBOSE | re.DOTALL,
)
_ADJACENT = re.compile(r"\s*(?:\|\|)?\s*(?=[rR]?[\"'])")
"""SQL joins such strings into one."""
_OPENING_QUOTE = re.compile(r"[A-Za-z]?(\\*[\"'`])")
_BRACKET = re.compile(r"\"(?:[^\"\\]|\\.)*\"|[{}\[\]]", re.DOTALL)


def is_secret(name: str) -> bool:
    """Return whether a name is likely to be of a secret: a password, a token, a key."""
    if _MAYBE.search(name) is None:
        return False
    parts = [part.lower() for part in _PART.findall(name)]
    flat = "".join(parts)
    return (
        not _WORDS.isdisjoint(parts)
        or _is_clear(flat)
        or flat.endswith("token")
        or any(
            part in ("key", "keys") and previous in _PAIRS
            for previous, part in zip(parts, parts[1:], strict=False)
        )
        or any(pair == ("key", "id") for pair in zip(parts, parts[1:], strict=False))
    )


def _is_clear(flat: str) -> bool:
    """Return whether a name, in lowercase letters only, is of a secret in any context."""
    return any(word in flat for word in _ANYWHERE)


def masked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties without their secrets.

    If a name looks secret, its whole value is masked. In other values, only the keys in URLs and clear
    passwords are masked.
    """
    return {
        key: MASK if value and is_secret(key) else _of_property(value) for key, value in properties.items()
    }


def _of_property(value: str) -> str:
    return _without_values(masked_urls(value), lambda name: _is_clear("".join(_PART.findall(name)).lower()))


def masked_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts, whose values are JSON, without their secrets."""
    return _masked_items(facts, 0, is_hidden=False)


def _masked_items(facts: Mapping[str, Any], level: int, *, is_hidden: bool) -> dict[str, Any]:
    return {
        key: _masked_value(value, level + 1, is_hidden=is_hidden or is_secret(key))
        for key, value in facts.items()
    }


def _masked_value(value: Any, level: int, *, is_hidden: bool) -> Any:
    if level > LEVELS_MAX:
        return value
    match value:
        case str():
            return MASK if value and is_hidden else masked(value)
        case dict():
            return _masked_items(value, level, is_hidden=is_hidden)
        case list() | tuple():
            return [_masked_value(item, level + 1, is_hidden=is_hidden) for item in value]
        case _:
            return value


def masked_urls(text: str) -> str:
    """Return a text without the keys and signatures in its URLs."""
    text = _USER.sub(_masked_user, text)
    text = _QUERY.sub(_masked_parameter, text)
    if "%" in text:
        text = _ENCODED_USER.sub(_masked_encoded_user, text)
        text = _ENCODED_QUERY.sub(_masked_parameter, text)
    return _KEY_ID.sub(MASK, text)


def masked(text: str) -> str:
    """Return a text without the values of names that look secret (`password=x`, `"token": "x"`), even in its URLs."""
    text = _HEADER.sub(rf"\1{MASK}", _KEY_FILE.sub(rf"\1{MASK}\2", masked_urls(text)))
    return _without_values(text, is_secret)


def _without_values(text: str, hides: Callable[[str], bool]) -> str:
    """Return a text with masks for the values of the names that `hides` accepts.

    Other values are searched too, because a value may contain names and values of its own.
    """
    pieces: list[str] = []
    copied_end = 0
    for match in _NAMED.finditer(text):
        if match.start() < copied_end or not hides(match["name"] or match["quoted"]):
            continue
        end, mask = _value_after(text, match)
        if mask:
            pieces += (text[copied_end : match.end()], mask)
            copied_end = end
    return "".join((*pieces, text[copied_end:]))


def _value_after(text: str, match: re.Match[str]) -> tuple[int, str]:
    """Return the end of the value after a name, and its replacement; "" if it stays."""
    start = match.end()
    if match["json"] and _is_of_a_sentence(text, match):
        return start, ""
    if text[start : start + 1] in ("{", "["):
        return _after_brackets(text, start), f'"{MASK}"' if match["json"] else MASK
    value = _VALUE.match(text, start)
    if value is None or value[0] == "?" or value[0].startswith(MASK):
        return start, ""
    if value["bare"]:
        return value.end(), f'"{MASK}"' if match["json"] else MASK
    end = value.end()
    while (gap := _ADJACENT.match(text, end)) is not None and (next_value := _VALUE.match(text, gap.end())):
        end = next_value.end()
    quote = _OPENING_QUOTE.match(value[0])
    return end, MASK if quote is None else f"{quote[1]}{MASK}{quote[1]}"


def _is_of_a_sentence(text: str, match: re.Match[str]) -> bool:
    """Return whether a quoted name with a colon ends a clause, as in: there is no table 'token': check the name."""
    prefix = text[max(0, match.start() - 2) : match.start()]
    return prefix[:1].isalnum() and prefix[1:] == " " and _PROSE.match(text, match.end()) is not None


def _after_brackets(text: str, start: int) -> int:
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(bracket[0], 0)
        if depth == 0:
            return bracket.end()
    return len(text)


def _masked_user(match: re.Match[str]) -> str:
    is_container = match[1].lower() in _CONTAINERS and ":" not in match[2]
    # A key may contain slashes, but a path with an @ somewhere is not a key.
    is_path = "/" in match[2] and ":" not in match[2].partition("/")[0]
    return match[0] if is_container or is_path else f"{match[1]}{MASK}@"


def _masked_encoded_user(match: re.Match[str]) -> str:
    user = match[2].lower()
    is_path = "%2f" in user and "%3a" not in user.partition("%2f")[0]
    return match[0] if is_path else f"{match[1]}{MASK}%40"


def _masked_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{match[3]}{MASK}" if is_secret(match[2]) else match[0]
