"""From a URL to a store."""

from __future__ import annotations

from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.store import DocketStore
from affiant_core.errors import DocketUrlInvalid


def open_docket(url: str) -> DocketStore:
    """Open the Docket that ``url`` names; the caller closes it.

    ``memory://`` keeps rows in this process only. ``sqlite:///relative/path.db`` and ``sqlite:////absolute/path.db``
    keep them in a file, which is made, with its folder's permission, when it does not exist.

    Raises ``DocketUrlInvalid`` for any other URL, ``DocketUnavailable``, ``DocketCorrupt`` or ``DocketSchemaTooNew``
    when the file cannot serve.
    """
    if not isinstance(url, str):
        raise DocketUrlInvalid(f"a docket URL is text such as 'sqlite:///docket.db', not a {type(url).__name__}.")
    if url == "memory://":
        return InMemoryDocketStore()
    if url.startswith("sqlite:"):
        from affiant_core.docket.sql import SqlDocketStore  # noqa: PLC0415  # SQLAlchemy is imported when it is used

        return SqlDocketStore.open(url)
    scheme = url.split(":", 1)[0]
    raise DocketUrlInvalid(
        f"no docket store for the scheme {scheme!r}; use 'sqlite:///path/to/docket.db', or 'memory://' for rows that "
        "end with the process."
    )
