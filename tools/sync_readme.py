"""Put examples/minimal.py into the README's code block. The tests check that the two are equal."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Rewrite the first Python block of the README."""
    readme = ROOT / "README.md"
    program = (ROOT / "examples" / "minimal.py").read_text(encoding="utf-8")
    text = readme.read_text(encoding="utf-8")
    readme.write_text(re.sub(r"```python\n.*?```", lambda _: f"```python\n{program}```", text, count=1, flags=re.S))


if __name__ == "__main__":
    main()
