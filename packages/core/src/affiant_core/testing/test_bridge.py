"""Collected by ``pytest --pyargs affiant_core.testing --affiant-bridge MODULE``."""

from affiant_core.testing.bridge_suite import BridgeSuite


class TestBridge(BridgeSuite):
    """The standard tests on the bridges of the command line."""
