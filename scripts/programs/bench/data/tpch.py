"""TPC-H's lineitem, for the benchmarks that change or read it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def lineitem(folder: Path, scale: float) -> Path:
    """Return a folder with lineitem as Parquet. At scale factor 1 it has 6 million rows."""
    dataset = folder / "tpch"
    program = Path(sys.executable).parent / "tpchgen-cli"
    options = {"--scale-factor": f"{scale:g}", "--tables": "lineitem", "--output-dir": str(dataset)}
    command = [str(program), "parquet", *(f"{key}={value}" for key, value in options.items())]
    subprocess.run(command, check=True, capture_output=True)
    return dataset
