"""Write the files that are generated from the bridge's structs."""

from __future__ import annotations

from pathlib import Path

from programs.wire.listing import listed
from programs.wire.scala import sources

ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    for path, text in {**sources(), **listed(ROOT)}.items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
