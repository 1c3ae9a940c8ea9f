"""Where secrets stand in texts and properties, and what is kept in their place. Pure.

What a log has, it has for ever, and messages are copied into tickets. So before a text is kept or shown, the values of
names that look secret, and the keys in URLs, are masked. It is a guess by names: a value that says nothing of itself,
under a name that does not either, is not known here.

One rule: what is masked once stays as it is when it is masked again. It must not know what the text is for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"

LEVELS_MAX = 256
"""So deep are facts looked at. Deeper ones are refused: a commit has at most so many levels (`decoding.DEPTH_MAX`)."""

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
"""A key of these is secret."""
_ANYWHERE = ("secret", "password", "passwd", "passphrase", "credential", "accesskey", "privatekey", "apikey")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# Each of these takes time that grows with the text's length, whatever it is: names are looked for from their beginnings
# only, and what stands before an @ is of a limited length.
_NAME = r"[\w.\-]+"
_USER = re.compile(r"((?:abfss?|wasbs?)?://)([^\s'\"`@]{0,1024})@", re.IGNORECASE)
_CONTAINERS = ("abfs://", "abfss://", "wasb://", "wasbs://")
"""In URLs of these, a container stands before the @."""
_QUERY = re.compile(r"([?&;])([\w.%\-]+)=([^&\s'\"`#;)]*)")
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")
_PAIR = re.compile(
    rf"""(?P<name>(?P<quote>["'`]){_NAME}(?P=quote)|(?<![\w.\-]){_NAME})
        (?P<between>\s*(?:=>|==?)\s*|(?<=["'`])\s*:\s*|\s+(?=["']))
        (?P<value>"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.|'')*'?|`[^`]*`?|[^\s,;&)}}\]"'`]+)""",
    re.VERBOSE,
)
_QUOTES = "\"'`"


def is_secret(name: str) -> bool:
    """Return whether what has this name is likely to be a secret: a password, a token, a key."""
    parts = [part.lower() for part in _PART.findall(name)]
    flat = "".join(parts)
    return (
        not _WORDS.isdisjoint(parts)
        or any(word in flat for word in _ANYWHERE)
        or flat.endswith("token")
        or any(
            part in ("key", "keys") and before in _PAIRS
            for before, part in zip(parts, parts[1:], strict=False)
        )
        or any(pair == ("key", "id") for pair in zip(parts, parts[1:], strict=False))
    )


def masked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties without their secrets: all of a value whose name looks secret, and the keys in others' URLs."""
    return {
        key: MASK if value and is_secret(key) else masked_urls(value) for key, value in properties.items()
    }


def masked_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts, whose values are JSON, without their secrets."""
    return _masked_items(facts, 0)


def _masked_items(facts: Mapping[str, Any], level: int) -> dict[str, Any]:
    return {key: _masked_value(key, value, level + 1) for key, value in facts.items()}


def _masked_value(name: str, value: Any, level: int) -> Any:
    if level > LEVELS_MAX:
        return value
    match value:
        case str():
            return MASK if value and is_secret(name) else masked(value)
        case dict():
            return _masked_items(value, level)
        case list() | tuple():
            return [_masked_value(name, each, level + 1) for each in value]
        case _:
            return value


def masked_urls(text: str) -> str:
    """Return a text without the keys and signatures in its URLs."""
    text = _USER.sub(_masked_user, text)
    text = _QUERY.sub(_masked_parameter, text)
    return _KEY_ID.sub(MASK, text)


def masked(text: str) -> str:
    """Return a text without the values of names that look secret (`password=x`, `"token": "x"`), also in its URLs."""
    return _PAIR.sub(_masked_pair, masked_urls(text))


def _masked_user(found: re.Match[str]) -> str:
    is_container = found[1].lower() in _CONTAINERS and ":" not in found[2]
    # A key may have slashes, but a path that has an @ somewhere is no key.
    is_path = "/" in found[2] and ":" not in found[2].partition("/")[0]
    return found[0] if is_container or is_path else f"{found[1]}{MASK}@"


def _masked_parameter(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}={MASK}" if is_secret(found[2]) else found[0]


def _masked_pair(found: re.Match[str]) -> str:
    value = found["value"]
    if not is_secret(found["name"]) or value in ("?", MASK):
        return found[0]
    quote = value[0] if value[0] in _QUOTES else ""
    return f"{found['name']}{found['between']}{quote}{MASK}{quote}"
