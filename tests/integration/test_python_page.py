"""The code of docs/python.md runs, in its order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs/python.md"


def test_the_code_of_the_page_about_python_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 11
    names: dict[str, Any] = {}
    for block in blocks:
        code = block.replace("/tmp/warehouse", str(tmp_path / "warehouse"))
        exec(compile(code, PAGE.name, "exec"), names)
    assert names["table"].to_arrow()["id"].to_pylist() == [1, 3]
    exec("found = duckdb.sql('SELECT id FROM relation WHERE score > 1').fetchall()", names)
    assert names["found"] == [(3,), (None,)]
