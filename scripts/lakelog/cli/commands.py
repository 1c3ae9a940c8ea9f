"""The list of all commands, in groups, and the command that a mistyped name means.

A command's module is loaded when the command runs. `lakelog --help` loads all of them, for their summaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module

import click

from lakelog.catalog.nearest import nearest

PROGRAM = "lakelog"
VARIABLE = "_LAKELOG_COMPLETE"
"""Set by the shell when it wants completions: click looks for a variable of this name."""

GROUPS = {
    "Look": {
        "ls": "inspection",
        "show": "inspection",
        "history": "inspection",
        "diff": "contents",
        "view": "view",
        "ui": "ui",
        "files": "inspection",
        "inspect": "inspection",
        "cat": "inspection",
        "audit": "audit",
    },
    "Query": {"head": "contents", "sql": "contents"},
    "Go back, and keep versions": {
        "restore": "contents",
        "dropped": "dropped",
        "undrop": "dropped",
        "refs": "refs",
        "tag": "refs",
        "branch": "refs",
    },
    "Maintain": {
        "health": "health",
        "maintain": "maintain",
        "compact": "maintenance",
        "cluster": "cluster",
        "expire": "maintenance",
        "vacuum": "maintenance",
        "fsck": "fsck",
        "forget": "forget",
    },
    "Back up and copy": {
        "backup": "backups",
        "backups": "backups",
        "verify-backup": "backups",
        "restore-backup": "backups",
        "delete-backup": "backups",
        "copy": "backups",
        "finish-copy": "backups",
        "clone": "backups",
        "materialize": "backups",
        "release-clone": "backups",
    },
    "Other engines and formats": {
        "spark-conf": "spark",
        "serve": "server",
        "token": "server",
        "publish": "iceberg",
        "export": "iceberg",
        "import": "iceberg",
        "adopt": "iceberg",
    },
    "Set up, and get help": {
        "doctor": "doctor",
        "explain": "help",
        "completion": "help",
        "help": "help",
    },
}
"""For each group its commands, each with the module that has it."""

MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}

OTHER_WORDS = {
    "history": ("log", "commits", "versions", "snapshots"),
    "ls": ("list", "dir", "tables", "namespaces", "tree"),
    "show": ("describe", "desc", "info", "schema", "columns", "properties", "table"),
    "head": ("rows", "sample", "tail", "scan", "preview"),
    "sql": ("select", "query", "duckdb", "count"),
    "diff": ("changes", "compare"),
    "view": ("draw", "plot", "graph", "html"),
    "inspect": ("metadata", "partitions", "manifests"),
    "audit": ("blame", "who"),
    "refs": ("tags", "branches"),
    "restore": ("rollback", "revert", "reset", "checkout"),
    "undrop": ("undelete", "recover"),
    "dropped": ("trash",),
    "health": ("status", "stats", "advice"),
    "compact": ("optimize", "rewrite", "bin-pack"),
    "cluster": ("zorder", "z-order", "sort", "order"),
    "vacuum": ("gc", "clean", "cleanup", "purge", "remove-orphan-files"),
    "expire": ("expire-snapshots", "prune", "expire-versions"),
    "fsck": ("verify", "validate", "check", "repair"),
    "forget": ("erase", "gdpr", "redact"),
    "backups": ("list-backups",),
    "copy": ("cp", "mirror"),
    "clone": ("shallow-clone", "fork"),
    "serve": ("server", "rest", "start"),
    "token": ("login", "auth", "credentials"),
    "spark-conf": ("spark", "conf", "config", "configure", "spark-sql", "pyspark"),
    "import": ("convert", "migrate", "register"),
    "explain": ("error", "errors", "why"),
    "help": ("man", "usage", "commands"),
}
"""The names that people and other programs have for a command."""

ELSEWHERE = {
    ("drop", "rm", "delete", "remove", "rmdir"): "DROP TABLE and DELETE of SQL, or of Python",
    ("create", "mkdir", "new", "init", "touch"): "CREATE TABLE of SQL, or create_table of Python",
    ("insert", "append", "write", "update", "merge", "load"): "SQL, or append, update and merge of Python",
    ("alter", "rename", "mv", "move", "set"): "ALTER TABLE of SQL, or alter and rename_table of Python",
}
"""Words for changes that no command makes, and the way to make them."""

OTHER_OPTIONS = {
    "--apply": ("--yes", "--force", "--execute", "--no-dry-run", "--confirm", "--run"),
    "--warehouse": ("--url", "--uri", "--path", "--location", "--root", "--lake"),
    "--json": ("--format", "--output-format"),
    "--limit": ("--max", "--rows", "--count", "--top", "--lines"),
    "--where": ("--filter", "--condition", "--predicate"),
    "--version": ("--at", "--snapshot", "--snapshot-id"),
    "--ref": ("--branch", "--tag"),
    "--endpoint": ("--endpoint-url", "--s3-endpoint"),
    "--verbose": ("--debug", "-v", "--trace"),
    "--help": ("-?", "--usage"),
}
"""The names that people and other programs have for an option."""


def command_named(name: str) -> click.Command | None:
    """Return the command of that name, or None if there is none."""
    if name not in MODULES:
        return None
    commands: tuple[click.Command, ...] = import_module(f"lakelog.cli.{MODULES[name]}").COMMANDS
    return next(command for command in commands if command.name == name)


def summary_of(command: click.Command) -> str:
    """Return the first paragraph of a command's help, as a single line."""
    return " ".join((command.help or "").split("\n\n", 1)[0].split())


def hint_for_command(name: str) -> str:
    """Return a sentence with the command that a mistyped name may mean, or "" if no command is like it."""
    word = name.lower().replace("_", "-")
    for words, place in ELSEWHERE.items():
        if word in words:
            return f"No command does that: use {place}."
    if "." in name or "/" in name:
        return f"A command comes first: lakelog show {name}."
    return _hint(word, MODULES, OTHER_WORDS)


def hint_for_option(option: str, options: Sequence[str]) -> str:
    """Return a sentence with the option that a mistyped option may mean, or "" if no option is like it."""
    other_words = {
        option_name: words for option_name, words in OTHER_OPTIONS.items() if option_name in options
    }
    return _hint(option.lower().replace("_", "-"), options, other_words)


def _hint(word: str, names: Iterable[str], other_words: dict[str, tuple[str, ...]]) -> str:
    likely = _names_like(word, list(names), other_words)
    return f"Did you mean {' or '.join(likely)}?" if likely else ""


def _names_like(word: str, names: list[str], other_words: dict[str, tuple[str, ...]]) -> list[str]:
    if word in names:
        return [word]
    by_word = {other_word: actual for actual, words in other_words.items() for other_word in words}
    if word in by_word:
        return [by_word[word]]
    if len(word.strip("-")) >= 2 and (candidates := [name for name in names if name.startswith(word)]):
        return sorted(candidates)[:3]
    return list(dict.fromkeys(by_word.get(name, name) for name in nearest(word, [*names, *by_word])))
