from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend():
    """Semantic Kernel runs on asyncio only."""
    return "asyncio"
