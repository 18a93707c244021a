"""Where the tests find the protocol's public documents, which are not part of this repository."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "AFFIANT_PROTOCOL_DIR"

_SIBLING = Path(__file__).resolve().parents[3] / "shared" / "protocol"


def protocol_dir() -> Path:
    """The folder of the documents. Without it the caller, a test or a whole module, is skipped; in CI it fails."""
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else _SIBLING
    if folder.is_dir():
        return folder
    if named:
        pytest.fail(f"{VARIABLE} names {named}, which is no folder.", pytrace=False)
    reason = f"the protocol's documents are not at hand: set {VARIABLE} to the folder that holds INDEX.json."
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason=reason, allow_module_level=True)


def load(path: Path) -> Any:
    """A document as JSON data."""
    return json.loads(path.read_text(encoding="utf-8"))


def index() -> dict[str, Any]:
    """The list of the fixtures with their SHA-256."""
    return load(protocol_dir() / "INDEX.json")
