"""The Docket: the durable record of every proposal, who decided on it, and what became of it (DK, AZ-5)."""

from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.model import DocketEntry
from affiant_core.docket.opening import open_docket
from affiant_core.docket.store import DocketStore, Listing, Page, Scope, Sweep

__all__ = ["DocketEntry", "DocketStore", "InMemoryDocketStore", "Listing", "Page", "Scope", "Sweep", "open_docket"]
