"""Programs of actors as states that can be hashed, compared and gone on from more than once.

A program is a generator: it yields requests to the store and gets their answers. Its state is where it stands in each
of its frames, with the values of those local variables that it may still read: so two histories that no longer matter
are one state. A generator cannot be copied; to go on from a state a second time, it is run again from its start with
the same answers, once for each pair of state and answer, and then remembered.

What stands on a frame's evaluation stack is not seen. So in a program, `yield` must be a statement of its own or all of
an assignment's right side, and never inside a `for`; `check_source` holds that.
"""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Callable, Generator, Hashable
from types import CodeType, ModuleType
from typing import Any, NamedTuple

Program = Generator[Any, Any, Any]


class Report(NamedTuple):
    """Yielded to report something to the world: it costs no step, and is answered with None."""

    what: str
    data: tuple[Any, ...]


class Machine:
    """All states of all programs met so far. State 0 is the end."""

    def __init__(self, values: Callable[[int], Any]) -> None:
        self.requests: list[Any] = [None]
        self.moves: dict[tuple[int, int], tuple[int, tuple[Report, ...]]] = {}
        self._values = values
        self._ids: dict[Hashable, int] = {}
        self._origins: list[Any] = [None]

    def start(self, make: Callable[[], Program]) -> int:
        state, reports = self._run(make(), None, make)
        assert not reports, "a program's first request comes before its first report"
        return state

    def resume(self, state: int, answer: int) -> tuple[int, tuple[Report, ...]]:
        """The state after the answer (a value's number), and what was reported on the way."""
        move = self.moves.get((state, answer))
        if move is None:
            move = self._run(self._again(state), self._values(answer), (state, answer))
            self.moves[state, answer] = move
        return move

    def _again(self, state: int) -> Program:
        answers = []
        origin = self._origins[state]
        while isinstance(origin, tuple):
            answers.append(self._values(origin[1]))
            origin = self._origins[origin[0]]
        program: Program = origin()
        request = next(program)
        for answer in reversed(answers):
            request = program.send(answer)
            while isinstance(request, Report):
                request = program.send(None)
        return program

    def _run(self, program: Program, answer: Any, origin: Any) -> tuple[int, tuple[Report, ...]]:
        reports = []
        try:
            request = program.send(answer)
            while isinstance(request, Report):
                reports.append(request)
                request = program.send(None)
        except StopIteration:
            return 0, tuple(reports)
        key = (_position(program), request)
        state = self._ids.get(key)
        if state is None:
            state = self._ids[key] = len(self.requests)
            self.requests.append(request)
            self._origins.append(origin)
        return state, tuple(reports)


def _position(program: Program) -> Hashable:
    frames = []
    inner: Any = program
    while inner is not None:
        frame = inner.gi_frame
        values = frame.f_locals
        names = _live(frame.f_code, frame.f_lasti)
        frames.append(
            (frame.f_code, frame.f_lasti, tuple((name, values[name]) for name in names if name in values))
        )
        inner = inner.gi_yieldfrom
    return tuple(frames)


_live_names: dict[CodeType, dict[int, tuple[str, ...]]] = {}


def _live(code: CodeType, offset: int) -> tuple[str, ...]:
    """The local variables that may be read after the instruction at `offset` and before they are written."""
    if code not in _live_names:
        _live_names[code] = _liveness(code)
    return _live_names[code][offset]


def _liveness(code: CodeType) -> dict[int, tuple[str, ...]]:
    instructions = list(dis.get_instructions(code))
    place = {instruction.offset: n for n, instruction in enumerate(instructions)}
    texts_before: list[frozenset[str]] = [frozenset()] * len(instructions)
    texts_after: list[frozenset[str]] = [frozenset()] * len(instructions)
    is_changed = True
    while is_changed:
        is_changed = False
        for n in range(len(instructions) - 1, -1, -1):
            instruction, name = instructions[n], instructions[n].opname
            following = []
            jumps = name.startswith("JUMP_") and not name.startswith("JUMP_IF")
            if not jumps and not name.startswith(("RETURN_VALUE", "RETURN_CONST", "RAISE", "RERAISE")):
                following.append(n + 1)
            if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
                following.append(place[instruction.argval])
            out = frozenset().union(*(texts_before[f] for f in following if f < len(instructions)))
            names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            into = out
            if name in ("STORE_FAST", "DELETE_FAST"):
                into = out - frozenset(names)
            elif "FAST" in name:  # every form of loading; the newer double forms count as loading only
                into = out | frozenset(names)
            if into != texts_before[n] or out != texts_after[n]:
                texts_before[n], texts_after[n], is_changed = into, out, True
    return {instruction.offset: tuple(sorted(texts_after[n])) for n, instruction in enumerate(instructions)}


def check_source(module: ModuleType) -> list[str]:
    """Where a program of the module keeps something on its stack across a yield."""
    wrong = []
    tree = ast.parse(inspect.getsource(module))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        proper: set[ast.AST] = set()
        looped: set[ast.AST] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.Expr | ast.Return) and node.value is not None:
                proper.add(node.value)
            if isinstance(node, ast.For | ast.With | ast.Try):
                looped.update(ast.walk(node))
        for node in ast.walk(function):
            if isinstance(node, ast.Yield | ast.YieldFrom) and (node not in proper or node in looped):
                wrong.append(f"{module.__name__}:{node.lineno}")
    return wrong
