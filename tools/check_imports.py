"""Check the rules about imports that no import-linter contract can express. Run by ``nox -s imports``.

The contracts see ``import json``. They do not see JSON that is read or written through another name, nor a module that
is imported under a name computed at run time.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIRE = ROOT / "packages/core/src/affiant_core/wire.py"

# pydantic's own ways to JSON text and back; `from pydantic_core import from_json` is caught by the same names.
JSON_NAMES = frozenset({"dump_json", "from_json", "model_dump_json", "model_validate_json", "validate_json"})
DYNAMIC_IMPORTS = frozenset({"__import__", "import_module"})
# The kit runs on whatever bridge or store the command line names.
PLUGIN = ROOT / "packages/core/src/affiant_core/testing/plugin.py"


def names_used(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that the code reads, with its line: plain, after a dot, or imported."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                yield node.lineno, name
            case ast.ImportFrom(names=aliases):
                yield from ((node.lineno, alias.name) for alias in aliases)


def faults_of(path: Path) -> Iterator[str]:
    """What is wrong with one source file."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    place = path.relative_to(ROOT)
    for line, name in names_used(tree):
        if name in JSON_NAMES and path != WIRE:
            yield f"{place}:{line}: {name} reads or writes JSON; only affiant_core.wire does, use its functions"
        if name in DYNAMIC_IMPORTS and path != PLUGIN:
            yield f"{place}:{line}: {name} hides an import from the contracts; write an import statement"


def main() -> int:
    """Print every fault; the exit status says whether there was one."""
    sources = sorted(ROOT.glob("packages/*/src/**/*.py"))
    faults = [fault for source in sources for fault in faults_of(source)]
    print(*faults, f"check_imports: {len(sources)} files, {len(faults)} faults", sep="\n")
    return 1 if faults or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
