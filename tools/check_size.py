"""Check that each bridge is thin: under 500 lines of code. Run by ``nox -s imports``.

Counted are lines that hold code, in every module that a host may run: no blank lines, comments or docstrings, and not
``testing.py``, the harness for the conformance kit. A bridge that grows beyond holds something that belongs into the
core.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 500
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_of_code(path: Path) -> int:
    """How many lines of a file hold code."""
    text = path.read_text(encoding="utf-8")
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    tokens = tokenize.generate_tokens(iter(text.splitlines(keepends=True)).__next__)
    spans = (range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in SILENT)
    return len({line for span in spans for line in span} - documented)


def main() -> int:
    """Print the size of each bridge; the exit status says whether one is too large."""
    too_large = 0
    bridges = sorted(ROOT.glob("packages/*_bridge/src/*"))
    for bridge in bridges:
        modules = [each for each in sorted(bridge.glob("**/*.py")) if each.name != "testing.py"]
        size, raw = sum(map(lines_of_code, modules)), sum(len(each.read_text().splitlines()) for each in modules)
        too_large += size >= LIMIT
        print(f"check_size: {bridge.name}: {size} lines of code ({raw} with docstrings, comments and blank lines)")
    return 1 if too_large or not bridges else 0


if __name__ == "__main__":
    sys.exit(main())
