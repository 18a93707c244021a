from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend():
    """The SDK runs on asyncio only."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch, capfd):
    """No test needs a key, and none makes the SDK want to export a trace."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    yield
    assert "OPENAI_API_KEY" not in capfd.readouterr().err
