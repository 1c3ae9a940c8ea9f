"""Makes all golden files anew: `python -m tests.format.remake`.

Only for folders that no release has written (see `test_frozen`). Others are never edited or made anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    programs = {
        folder: f"tests.format.catalog.{folder.name}"
        for folder in sorted((HERE / "catalog").iterdir())
        if folder.is_dir() and (HERE / "catalog" / f"{folder.name}.py").exists()
    } | {HERE / "log-1": "tests.format.golden_log"}
    for folder, program in programs.items():
        name = folder.with_name(f"{folder.name}.new")
        subprocess.run([sys.executable, "-m", program, str(name)], check=True)
        shutil.rmtree(folder)
        name.rename(folder)


if __name__ == "__main__":
    main()
