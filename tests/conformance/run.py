"""Asks a reader of lakelog warehouses the questions of the conformance kit: `python run.py -- COMMAND…`.

The command gets a warehouse, a question and its arguments, and prints an answer in JSON (see README.md beside
this file). With `--writer`, the races of the kit are run too. Standard library only, as the kit has it too.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    from tests.conformance.rehash import Objects, moved, objects_of, write_objects
except ModuleNotFoundError:  # in the kit, where this file is a program by itself
    from rehash import Objects, moved, objects_of, write_objects  # type: ignore[import-not-found, no-redef]

PLACE = "/lakelog-conformance"
"""Stands in absolute paths for the folder of a case."""

ANSWERED, REFUSED, ABSENT = 0, 2, 3

Ask = Callable[[Sequence[str]], tuple[int, str]]
"""Asks a reader: takes a warehouse, a question and its arguments; returns the exit code and the output."""

Step = Callable[[Mapping[str, Any]], str]
"""Has a client of a race do a step; returns the outcome."""

Join = Callable[[ExitStack, str], Step]
"""Lets a client begin on a warehouse. The stack ends it."""

UNSUPPORTED = "unsupported"
"""The outcome of a step that a writer cannot do: the race is left out."""

STEP_SECONDS = 120
"""After this time for a step, a writer is ended."""


@dataclass(frozen=True)
class CaseResult:
    """The result of a case or a race: how many questions were asked, and which answers were wrong."""

    name: str
    about: str
    features: tuple[str, ...]
    asked: int
    wrong: tuple[str, ...]
    is_left_out: bool = False

    @property
    def verdict(self) -> str:
        """The result in a word."""
        return "FAIL" if self.wrong else "skip" if self.is_left_out else "pass"


def results(kit: Path, ask: Ask, only: Sequence[str] = ()) -> Iterator[CaseResult]:
    """Yield the result of each case of a kit, in the order of their names."""
    for folder in sorted(path.parent for path in (kit / "cases").glob("*/case.json")):
        if only and folder.name not in only:
            continue
        case = json.loads((folder / "case.json").read_text("utf-8"))
        wrong: list[str] = []
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary).resolve()
            objects = objects_of(folder)
            stored = {key: data for key, data in objects.items() if not key.startswith("instead/")}
            here = _placed(stored, place)
            (place / "warehouse").mkdir()
            write_objects(place, here)
            for question in case["questions"]:
                prefix = f"instead/{question.get('instead')}/"
                changed = {
                    key.removeprefix(prefix): data for key, data in objects.items() if key.startswith(prefix)
                }
                if changed:
                    moved_here = _placed({**stored, **changed}, place)
                    changed = {key: moved_here[key] for key in changed}
                without = question.get("without", [])
                write_objects(place, changed)
                for key in without:
                    (place / key).unlink()
                wrong.append(_fault(question, ask, place))
                write_objects(place, {key: here[key] for key in (*changed, *without)})
        yield CaseResult(
            folder.name, case["about"], tuple(case["features"]), len(wrong), tuple(filter(None, wrong))
        )


def race_results(kit: Path, join: Join, ask: Ask, only: Sequence[str] = ()) -> Iterator[CaseResult]:
    """Yield the result of each race of a kit. `ask` answers the question at the end."""
    for path in sorted((kit / "races").glob("*.json")):
        if only and path.stem not in only:
            continue
        script = json.loads(path.read_text("utf-8"))
        wrong: list[str] = []
        done = 0
        with tempfile.TemporaryDirectory() as temporary, ExitStack() as clients:
            place = Path(temporary).resolve()
            write_objects(place, _placed(objects_of(kit / "cases" / script["case"]), place))
            steps: dict[str, Step] = {}
            outcome = ""
            for step in script["steps"]:
                name = step["client"]
                if name not in steps:
                    steps[name] = join(clients, str(place / "warehouse"))
                outcome = steps[name](
                    {"do": step["do"], "table": script["table"], "rows": step.get("rows", [])}
                )
                if outcome == UNSUPPORTED:
                    break
                done += 1
                if outcome != step["outcome"]:
                    wrong.append(f"{name}, {step['do']}: {outcome}, not {step['outcome']}")
            is_left_out = outcome == UNSUPPORTED
            if not is_left_out:
                done += 1
                wrong.append(_fault(script["then"], ask, place))
        faults = tuple(filter(None, wrong))
        yield CaseResult(f"race {path.stem}", script["about"], (), done, faults, is_left_out)


def writers_of(command: Sequence[str]) -> Join:
    """Return how to start a client of a race: a process that reads a step in JSON in each line, and answers it."""

    def join(stack: ExitStack, warehouse: str) -> Step:
        process = stack.enter_context(_running([*command, warehouse]))

        def step(asked: Mapping[str, Any]) -> str:
            assert process.stdin is not None and process.stdout is not None
            limit = threading.Timer(STEP_SECONDS, process.kill)
            limit.start()
            try:
                process.stdin.write(json.dumps(asked) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = ""
            finally:
                limit.cancel()
            try:
                return str(json.loads(line)["outcome"])
            except (ValueError, TypeError, KeyError):
                return f"no outcome, but {line[:200]!r}"

        return step

    return join


@contextmanager
def _running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a program until the end of its standard input."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        yield process
    finally:
        try:
            process.communicate(timeout=STEP_SECONDS)
        except (subprocess.TimeoutExpired, OSError):
            process.kill()
            process.wait()


def _placed(objects: Objects, place: Path) -> Objects:
    """Return the objects of a case for a folder."""
    is_named = any(PLACE.encode() in data for data in objects.values())
    return moved(objects, PLACE, str(place)) if is_named else objects


def _fault(question: dict[str, Any], ask: Ask, place: Path) -> str:
    """Return what is wrong with the answer to a question, or an empty text."""
    code, output = ask([str(place / "warehouse"), *question["ask"]])
    said = " ".join([*filter(None, [question.get("instead")]), *question["ask"]])
    expected = question.get("exit", ANSWERED)
    if code != expected:
        return f"{said}: exit code {code}, not {expected} ({question.get('why', output.strip()[-300:])})"
    if expected != ANSWERED:
        return ""
    try:
        answer = json.loads(output)
    except ValueError:
        return f"{said}: the answer is not JSON: {output[:200]!r}"
    wanted = json.loads(json.dumps(question["answer"]).replace(PLACE, str(place)))
    if comparable(answer) == comparable(wanted):
        return ""
    shown, right = (json.dumps(value, ensure_ascii=False)[:1000] for value in (answer, wanted))
    return f"{said}: {shown} and not {right}"


def comparable(answer: Any) -> Any:
    """Return an answer in a form that is equal for equal answers: rows and files have no order."""
    if isinstance(answer, dict):
        members = {name: comparable(value) for name, value in answer.items()}
        if members.keys() == {"columns", "rows"}:
            members["rows"] = sorted(members["rows"], key=lambda row: json.dumps(row, sort_keys=True))
        return members
    if isinstance(answer, list):
        return [comparable(item) for item in answer]
    return int(answer) if isinstance(answer, float) and answer.is_integer() else answer


def of_command(command: Sequence[str]) -> Ask:
    """Return how to ask a program."""

    def ask(arguments: Sequence[str]) -> tuple[int, str]:
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, encoding="utf-8")
        return done.returncode, done.stdout or done.stderr

    return ask


def table_of(outcomes: Sequence[CaseResult]) -> str:
    """Return the results of cases, and of features, as a table, with the wrong answers below it."""
    width = max(len(outcome.name) for outcome in outcomes)
    lines = [
        f"{outcome.name:{width}}  {outcome.verdict}"
        f"  {outcome.asked - len(outcome.wrong):3}/{outcome.asked:<3}  {outcome.about}"
        for outcome in outcomes
    ]
    for feature in sorted({feature for outcome in outcomes for feature in outcome.features}):
        cases = [outcome for outcome in outcomes if feature in outcome.features]
        failed = any(outcome.wrong for outcome in cases)
        names = ", ".join(outcome.name for outcome in cases)
        lines.append(f"the feature {feature}: {'FAIL' if failed else 'pass'} ({names})")
    lines += [f"\n{outcome.name}: {fault}" for outcome in outcomes for fault in outcome.wrong]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run the kit for a command, and print the table. Returns the exit code."""
    parser = argparse.ArgumentParser(
        description="Ask a reader the questions of the conformance kit of lakelog."
    )
    parser.add_argument(
        "--kit", type=Path, default=Path(__file__).resolve().parent / "kit", help="the kit's folder"
    )
    parser.add_argument("--case", action="append", default=[], help="only this case")
    parser.add_argument("--writer", help="run the races too, with this command line of a writer")
    parser.add_argument(
        "--race", action="append", default=[], help="with --writer: only this race, and no case"
    )
    parser.add_argument("command", nargs="+", help="the reader, after --")
    asked = parser.parse_args(arguments)
    kit = asked.kit if (asked.kit / "cases").is_dir() else Path(__file__).resolve().parent
    ask = of_command(asked.command)
    if asked.race and asked.writer is None:
        parser.error("--race needs --writer")
    outcomes = [] if asked.race else list(results(kit, ask, asked.case))
    if asked.writer is not None and not (asked.case and not asked.race):
        outcomes += race_results(kit, writers_of(shlex.split(asked.writer)), ask, asked.race)
    if not outcomes:
        print("there is no such case or race", file=sys.stderr)
        return 1
    print(table_of(outcomes))
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
