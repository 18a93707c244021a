"""What a read found is carried to the writes of the same turn by the host's extractors (seed, "Entities")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable

from affiant_core.envelope import EntityRef, ReadResult
from affiant_core.fabric import ContextFabric
from affiant_core.filters.failures import Propagates, keep_result
from affiant_core.pipeline import CallNext, ToolInvocation
from affiant_core.telemetry import Telemetry


class Extraction:
    """What an extractor works with: the read's result, and the turn's fabric to put entities into."""

    def __init__(self, tool_name: str, result: ReadResult, fabric: ContextFabric) -> None:
        self.tool_name = tool_name
        self.result = result
        self._fabric = fabric

    def emit_entity(self, entity: EntityRef) -> EntityRef:
        """Put an entity into the turn's fabric, or overlay the one with its id. Nothing else gets there by itself."""
        return self._fabric.upsert(entity)


class ContextExtractor(ABC):
    """A host's picker of entities. It sees reads that it claims and that found something."""

    @abstractmethod
    def matches_tool(self, tool_name: str) -> bool:
        """Whether this extractor claims the tool."""

    @abstractmethod
    def extract(self, extraction: Extraction) -> Awaitable[None] | None:
        """Pick what later writes need and emit it. May be written with ``async`` or without."""


class EmitEveryEntity(ContextExtractor):
    """Puts every entity of the named tools' results into the fabric; of every tool when none is named."""

    def __init__(self, *tool_names: str) -> None:
        self._tool_names = frozenset(tool_names)

    def matches_tool(self, tool_name: str) -> bool:
        """Claim the named tools, or all of them."""
        return not self._tool_names or tool_name in self._tool_names

    def extract(self, extraction: Extraction) -> None:
        """Emit them all."""
        for entity in extraction.result.entities:
            extraction.emit_entity(entity)


class ContextExtractionFilter:
    """Runs one extractor after the tool. An extractor that fails is noted and the result stays as it is."""

    def __init__(self, extractor: ContextExtractor, telemetry: Telemetry, propagates: Propagates) -> None:
        self._extractor = extractor
        self._telemetry = telemetry
        self._propagates = propagates

    async def __call__(self, invocation: ToolInvocation, call_next: CallNext) -> None:
        """Extract from a read with at least one entity that the extractor claims."""
        await call_next()
        try:
            if not self._extractor.matches_tool(invocation.tool_name):
                return
            envelope = invocation.envelope()
            if isinstance(envelope, ReadResult) and envelope.entities:
                extraction = Extraction(invocation.tool_name, envelope, invocation.turn.fabric)
                await invocation.driver.call(self._extractor.extract, extraction)
        except Exception as error:
            if self._propagates(error):
                raise
            keep_result(invocation, self._telemetry, error, type(self._extractor).__name__)
