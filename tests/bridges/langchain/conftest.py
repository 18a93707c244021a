from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend():
    """LangChain and LangGraph run on asyncio only."""
    return "asyncio"
