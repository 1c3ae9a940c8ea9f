"""The errors that Python code raises, read from its source: the subclasses of `LakelogError`, and their messages.

A message is the text that such a class is called with. The reader follows a text through names assigned in the same
function and through functions that return it. It also follows parameters to the calls that pass them. Constants, such
as limits, appear with their value. A run-time value appears as `{name}`, or as `…` if it has no short name. Texts from
elsewhere are not seen.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

ROOT_CLASS = "LakelogError"
INTERNAL = {"DoneBefore", "NothingToDo", "VersionMoved"}
"""Errors that no caller sees, besides errors with a private name."""

VARIANTS_MAX = 8
DEPTH_MAX = 4
TRANSPARENT = {
    "str",
    "repr",
    "sorted",
    "list",
    "tuple",
    "len",
    "dotted",
    "join",
    "decode",
    "strip",
    "_named",
    "named",
}
"""Calls with a single argument that are shown as this argument."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class ErrorClass:
    name: str
    module: str
    kind: str
    base: str
    docstring: str


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """A text of an error. `room` is the folder of the code that raises it."""

    kind: str
    room: str
    text: str


@dataclass(slots=True)
class _Module:
    path: Path
    room: str
    name: str
    tree: ast.Module
    owners: dict[ast.AST, tuple[Function, ...]] = field(default_factory=dict)


class PythonErrors:
    """Reads `sources`, folders below `root` that hold Python packages."""

    def __init__(self, root: Path, sources: Sequence[str]) -> None:
        self._modules = [
            _module(root, root / source, path)
            for source in sources
            for path in sorted((root / source).rglob("*.py"))
        ]
        self._definitions: dict[str, list[tuple[_Module, Function]]] = defaultdict(list)
        self._calls: dict[str, list[tuple[_Module, ast.Call]]] = defaultdict(list)
        self._constants: dict[str, list[tuple[_Module, ast.expr]]] = defaultdict(list)
        for module in self._modules:
            for statement in module.tree.body:
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                    self._constants[statement.targets[0].id].append((module, statement.value))
            for node in ast.walk(module.tree):
                if isinstance(node, Function):
                    self._definitions[node.name].append((module, node))
                elif isinstance(node, ast.Call):
                    self._calls[_last_name(node.func)].append((module, node))
        self.classes = self._tree()

    def messages(self) -> list[Message]:
        """Return every message once for each room, sorted."""
        return sorted(
            {
                Message(error.kind, module.room, text)
                for error in self.classes
                for module, call in self._calls[error.name]
                for module, text in self._texts(module, call)
                if text.strip("… ")
            }
        )

    def _tree(self) -> list[ErrorClass]:
        """Return the subclasses of `LakelogError`, each after its base."""
        # This is a list because a request of the bridge may have the name of an error.
        class_nodes = [
            (module, node)
            for module in self._modules
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ClassDef)
        ]

        def below(base: ErrorClass) -> Iterator[ErrorClass]:
            yield base
            for module, node in class_nodes:
                if base.name in map(_last_name, node.bases):
                    yield from below(self._error_class(module, node, base))

        at_root = next((module, node) for module, node in class_nodes if node.name == ROOT_CLASS)
        root = self._error_class(*at_root, base=None)
        return [
            error_class
            for error_class in below(root)
            if not error_class.name.startswith("_") and error_class.name not in INTERNAL
        ]

    def _error_class(self, module: _Module, node: ast.ClassDef, base: ErrorClass | None) -> ErrorClass:
        kinds = [
            statement.value.value
            for statement in node.body
            if isinstance(statement, ast.Assign | ast.AnnAssign)
            and isinstance(statement.value, ast.Constant)
            and "kind" in ast.unparse(statement).split("=")[0]
        ]
        kind = str(kinds[0]) if kinds else base.kind if base else ""
        return ErrorClass(
            node.name, module.name, kind, base.name if base else "", ast.get_docstring(node) or ""
        )

    def _texts(
        self, module: _Module, call: ast.Call, at: int = 0, name: str = "message", depth: int = 0
    ) -> Iterator[tuple[_Module, str]]:
        """Yield the possible texts of a call's argument, each with the module that writes it."""
        expressions = [keyword.value for keyword in call.keywords if keyword.arg == name]
        if len(call.args) > at and not any(
            isinstance(argument, ast.Starred) for argument in call.args[: at + 1]
        ):
            expressions.append(call.args[at])
        for value in expressions:
            owners = module.owners.get(call, ())
            variants = self._variants(value, module, owners, depth)
            if variants is not None:
                yield from ((module, " ".join(text.split())) for text in variants)
            elif isinstance(value, ast.Name) and owners and depth < DEPTH_MAX:
                yield from self._given(value.id, module, owners[-1], depth)

    def _given(
        self, name: str, module: _Module, function: Function, depth: int
    ) -> Iterator[tuple[_Module, str]]:
        """Yield the texts that calls of a function pass for its parameter."""
        names = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
        keywords = [parameter.arg for parameter in function.args.kwonlyargs]
        if name not in (*names, *keywords) or function.name == "__init__":
            return
        at = names.index(name) if name in names else len(names)
        if names[:1] in (["self"], ["cls"]):
            at -= 1
        for caller, call in self._calls[function.name]:
            if caller is module or not function.name.startswith("_"):
                yield from self._texts(caller, call, at, name, depth + 1)

    def _variants(
        self, node: ast.expr, module: _Module, owners: tuple[Function, ...], depth: int
    ) -> list[str] | None:
        """Return the possible texts of an expression, or None if they are not written here."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=values):
                return _combined([self._part(value, module, owners, depth) for value in values])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                parts = [self._variants(operand, module, owners, depth) for operand in (left, right)]
                if parts == [None, None]:
                    return None
                return _combined([part or ["…"] for part in parts])
            case ast.IfExp(body=body, orelse=orelse):
                both = [self._variants(operand, module, owners, depth) for operand in (body, orelse)]
                return None if None in both else [text for part in both if part for text in part]
            case ast.Name(id=name):
                return self._assigned(name, module, owners, depth) or self._constant(name, module, depth)
            case ast.Call(func=func) if depth < DEPTH_MAX:
                return self._returned(_last_name(func), module, depth)
        return None

    def _part(self, node: ast.expr, module: _Module, owners: tuple[Function, ...], depth: int) -> list[str]:
        """Return the possible texts of an f-string's part. If they are not written there, return a placeholder."""
        if isinstance(node, ast.FormattedValue):
            if isinstance(node.value, ast.IfExp | ast.Constant | ast.JoinedStr | ast.BinOp):
                inner = self._variants(node.value, module, owners, depth)
                if inner is not None:
                    return inner
            value = self._value(node.value, module)
            return [placeholder(node.value) if value is None else _formatted(value, node.format_spec)]
        return self._variants(node, module, owners, depth) or ["…"]

    def _assigned(
        self, name: str, module: _Module, owners: tuple[Function, ...], depth: int
    ) -> list[str] | None:
        texts: list[str] = []
        for node in ast.walk(owners[-1]) if owners else ():
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in node.targets
            ):
                texts += (
                    self._variants(node.value, module, owners, depth + 1) or [] if depth < DEPTH_MAX else []
                )
        return texts or None

    def _constant(self, name: str, module: _Module, depth: int) -> list[str] | None:
        """Return the texts of the module's constant, or of the only constant with that name."""
        definitions = self._constants.get(name, [])
        candidates = [definition for definition in definitions if definition[0] is module] or definitions
        if len(candidates) != 1 or depth >= DEPTH_MAX:
            return None
        defining_module, value = candidates[0]
        return self._variants(value, defining_module, (), depth + 1)

    def _value(self, node: ast.expr, module: _Module) -> int | str | None:
        """Return the number or text of a constant.

        The module's own constant comes first, then an imported constant, then the only constant with that name.
        """
        if not isinstance(node, ast.Name) or not node.id.isupper():
            return None
        definitions = self._constants.get(node.id, [])
        sources = {
            statement.module
            for statement in ast.walk(module.tree)
            if isinstance(statement, ast.ImportFrom) and node.id in (alias.name for alias in statement.names)
        }
        own_definitions = [definition for definition in definitions if definition[0] is module]
        imported_definitions = [definition for definition in definitions if definition[0].name in sources]
        only = own_definitions or imported_definitions or definitions
        return _literal(only[0][1]) if len(only) == 1 else None

    def _returned(self, name: str, module: _Module, depth: int) -> list[str] | None:
        """Return the texts that the module's function returns, or else the only function with that name."""
        definitions = self._definitions.get(name, [])
        candidates = [definition for definition in definitions if definition[0] is module] or definitions
        if len(candidates) != 1:
            return None
        defining_module, function = candidates[0]
        texts: list[str] = []
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                texts += self._variants(node.value, defining_module, (function,), depth + 1) or []
        return texts or None


def placeholder(node: ast.expr) -> str:
    """Return the short name of a run-time value in braces, or `…` if it has none."""
    match node:
        case ast.Name(id=name):
            return f"{{{name.strip('_')}}}"
        case ast.Attribute(attr=name):
            return f"{{{name.strip('_')}}}"
        case ast.Subscript(value=value):
            return placeholder(value)
        case ast.Call(func=func, args=[only]) if _last_name(func) in TRANSPARENT:
            return placeholder(only)
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=[]) if attr in TRANSPARENT:
            return placeholder(value)
        case ast.GeneratorExp(generators=[only_one]) | ast.ListComp(generators=[only_one]):
            return placeholder(only_one.iter)
    return "…"


def _literal(node: ast.expr) -> int | str | None:
    """Return the text of a constant, which is a number, a product of numbers, or a string."""
    match node:
        case ast.Constant(value=int() | str() as value) if not isinstance(value, bool):
            return value
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            factors = _literal(left), _literal(right)
            if isinstance(factors[0], int) and isinstance(factors[1], int):
                return factors[0] * factors[1]
    return None


def _formatted(value: int | str, spec: ast.expr | None) -> str:
    match spec:
        case ast.JoinedStr(values=[ast.Constant(value=str(text))]):
            return format(value, text)
    return str(value)


def _combined(parts: Sequence[list[str]]) -> list[str]:
    """Return all texts that combine a variant of each part.

    If there are too many, `…` stands for each part with several variants.
    """
    count = 1
    for part in parts:
        count *= len(part)
    if count > VARIANTS_MAX:
        parts = [part if len(part) == 1 else ["…"] for part in parts]
    return ["".join(variants) for variants in product(*parts)]


def _module(root: Path, source: Path, path: Path) -> _Module:
    relative = path.relative_to(source.parent).with_suffix("")
    name = ".".join(relative.parts).removesuffix(".__init__")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = _Module(path, path.parent.relative_to(root).as_posix(), name, tree)
    _own(tree, (), module.owners)
    return module


def _own(node: ast.AST, owners: tuple[Function, ...], into: dict[ast.AST, tuple[Function, ...]]) -> None:
    """Record the functions that contain each call, the innermost last."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            into[child] = owners
        _own(child, (*owners, child) if isinstance(child, Function) else owners, into)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
