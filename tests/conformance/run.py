"""Asks a reader of lakelog warehouses the questions of the conformance kit: `python run.py -- COMMAND…`.

The command gets a warehouse, a question and its arguments, and prints an answer in JSON (see README.md beside
this file). Standard library only, as the kit has it too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    from tests.conformance.rehash import moved, objects_of, write_objects
except ModuleNotFoundError:  # in the kit, where this file is a program by itself
    from rehash import moved, objects_of, write_objects  # type: ignore[import-not-found, no-redef]

PLACE = "/lakelog-conformance"
"""Stands in absolute paths for the folder of a case."""

ANSWERED, REFUSED, ABSENT = 0, 2, 3

Ask = Callable[[Sequence[str]], tuple[int, str]]
"""Asks a reader: takes a warehouse, a question and its arguments; returns the exit code and the output."""


@dataclass(frozen=True)
class CaseResult:
    """The result of a case: how many questions were asked, and which answers were wrong."""

    name: str
    about: str
    features: tuple[str, ...]
    asked: int
    wrong: tuple[str, ...]


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
            own_data = {key: data for key, data in objects.items() if not key.startswith("instead/")}
            if any(PLACE.encode() in data for data in own_data.values()):
                own_data = moved(own_data, PLACE, str(place))
            (place / "warehouse").mkdir()
            write_objects(place, own_data)
            for question in case["questions"]:
                prefix = f"instead/{question.get('instead')}/"
                changed_data = {
                    key.removeprefix(prefix): data for key, data in objects.items() if key.startswith(prefix)
                }
                without = question.get("without", [])
                write_objects(place, changed_data)
                for key in without:
                    (place / key).unlink()
                wrong.append(_fault(question, ask, place))
                write_objects(place, {key: own_data[key] for key in (*changed_data, *without)})
        yield CaseResult(
            folder.name, case["about"], tuple(case["features"]), len(wrong), tuple(filter(None, wrong))
        )


def _fault(question: dict[str, Any], ask: Ask, place: Path) -> str:
    """Return what is wrong with the answer to a question, or an empty text."""
    code, output = ask([str(place / "warehouse"), *question["ask"]])
    reported_text = " ".join([*filter(None, [question.get("instead")]), *question["ask"]])
    expected = question.get("exit", ANSWERED)
    if code != expected:
        return f"{reported_text}: exit code {code}, not {expected} ({question.get('why', output.strip()[-300:])})"
    if expected != ANSWERED:
        return ""
    try:
        answer = json.loads(output)
    except ValueError:
        return f"{reported_text}: the answer is not JSON: {output[:200]!r}"
    wanted = json.loads(json.dumps(question["answer"]).replace(PLACE, str(place)))
    if comparable(answer) == comparable(wanted):
        return ""
    shown_text, right = (json.dumps(value, ensure_ascii=False)[:1000] for value in (answer, wanted))
    return f"{reported_text}: {shown_text} and not {right}"


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
        process = subprocess.run([*command, *arguments], capture_output=True, text=True, encoding="utf-8")
        return process.returncode, process.stdout or process.stderr

    return ask


def table_of(outcomes: Sequence[CaseResult]) -> str:
    """Return the results of cases, and of features, as a table, with the wrong answers below it."""
    width = max(len(outcome.name) for outcome in outcomes)
    lines = [
        f"{outcome.name:{width}}  {'FAIL' if outcome.wrong else 'pass'}"
        f"  {outcome.asked - len(outcome.wrong):3}/{outcome.asked:<3}  {outcome.about}"
        for outcome in outcomes
    ]
    for feature in sorted({feature for outcome in outcomes for feature in outcome.features}):
        cases = [outcome for outcome in outcomes if feature in outcome.features]
        is_failed = any(outcome.wrong for outcome in cases)
        names = ", ".join(outcome.name for outcome in cases)
        lines.append(f"the feature {feature}: {'FAIL' if is_failed else 'pass'} ({names})")
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
    parser.add_argument("command", nargs="+", help="the reader, after --")
    args = parser.parse_args(arguments)
    kit = args.kit if (args.kit / "cases").is_dir() else Path(__file__).resolve().parent
    outcomes = list(results(kit, of_command(args.command), args.case))
    if not outcomes:
        print("there is no such case", file=sys.stderr)
        return 1
    print(table_of(outcomes))
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
