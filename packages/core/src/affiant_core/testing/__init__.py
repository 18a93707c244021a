"""The conformance kit: proof that a bridge, or a Docket store, does what Affiant promises.

``pytest --pyargs affiant_core.testing --affiant-bridge affiant_langchain_bridge`` runs it on a bridge. Whoever writes a
bridge of their own gives it a :class:`Harness`; see ``bridge_suite`` and ``store_suite``. Needs pytest.
"""

from affiant_core.testing.direct import DirectHarness
from affiant_core.testing.harness import (
    QUESTION,
    Backend,
    Capability,
    Gap,
    Harness,
    Mode,
    Reply,
    ToolCall,
    Transcript,
    Unsupported,
    answers,
    never,
    notimpl,
    notyet,
    only,
    reply_at,
)

__all__ = [
    "QUESTION",
    "Backend",
    "Capability",
    "DirectHarness",
    "Gap",
    "Harness",
    "Mode",
    "Reply",
    "ToolCall",
    "Transcript",
    "Unsupported",
    "answers",
    "never",
    "notimpl",
    "notyet",
    "only",
    "reply_at",
]
