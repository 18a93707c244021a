"""Collected by ``pytest --pyargs affiant_core.testing --affiant-store MODULE:FUNCTION``."""

from affiant_core.testing.store_suite import StoreSuite


class TestStore(StoreSuite):
    """The standard tests on the stores of the command line."""
