"""Carries every proposal to the gate, and nothing else past a write's declaration (seed, Rule 2; DECISIONS 6 to 10)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from affiant_core.affidavit import Affidavit
from affiant_core.context import TurnContext
from affiant_core.envelope import ToolError, WriteProposal
from affiant_core.errors import Refusal, RefusalCode, WireError, WireupInvalid
from affiant_core.filters.failures import Propagates, keep_result, log_failure
from affiant_core.gate import Filing, ReviewGate
from affiant_core.pipeline import CallNext, ToolInvocation
from affiant_core.receipt import receipt_for
from affiant_core.vocabulary import ReviewStatus, operation_shape
from affiant_core.wire import read

log: logging.Logger = logging.getLogger(__name__)

FILING_FAILED = "REVIEW_FILING_FAILED"

ModelView: TypeAlias = Literal["receipt", "proposal"]


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """What a proposal is filed as: the sworn record, the turn that it belongs to, and the host's own row id if any."""

    affidavit: Affidavit
    turn: TurnContext
    entry_id: str | None = None


class ReviewContextProvider(Protocol):
    """The host's reading of a proposal: it takes the Affidavit out of ``envelope`` and names the identity."""

    def review_context(
        self, proposal: WriteProposal, turn: TurnContext
    ) -> ReviewContext | Awaitable[ReviewContext | None] | None:
        """The context to file under, or ``None`` when there is no usable identity; the proposal is refused then."""
        ...


class DefaultReviewContextProvider:
    """Reads the Affidavit from the proposal's envelope and takes the identity from the turn."""

    def review_context(self, proposal: WriteProposal, turn: TurnContext) -> ReviewContext:
        """Raises ``WireupInvalid`` when the envelope is not an Affidavit; the reason names the places, no values."""
        envelope = proposal.envelope
        if isinstance(envelope, Affidavit):
            return ReviewContext(envelope, turn)
        if not isinstance(envelope, dict):
            raise WireupInvalid("the proposal's envelope is not an Affidavit; make one with Affidavit.create(...).")
        try:
            return ReviewContext(read(Affidavit, envelope), turn)
        except WireError as error:
            raise WireupInvalid(f"the proposal's envelope is not an Affidavit: {error}") from None


class ReviewGateFilter:
    """After the tool: a proposal is filed, declared or not, and the model gets a receipt in its place.

    A declared write that hands back anything but a proposal or an error is refused. Other results cross untouched.
    """

    def __init__(
        self,
        gate: ReviewGate,
        provider: ReviewContextProvider,
        *,
        model_view: ModelView = "receipt",
        terminate_on_review: bool = False,
        propagates: Propagates = lambda _: False,
    ) -> None:
        self._gate = gate
        self._provider = provider
        self._model_view = model_view
        self._terminate = terminate_on_review
        self._propagates = propagates

    async def __call__(self, invocation: ToolInvocation, call_next: CallNext) -> None:
        """Run the tool, then review its result, also when a layer further in failed after the tool had executed."""
        try:
            await call_next()
        except Exception as error:
            if not invocation.tool_executed or self._propagates(error):
                raise
            keep_result(invocation, self._gate.telemetry, error, "inside-review")
        await self.review(invocation)

    async def review(self, invocation: ToolInvocation) -> None:
        """Put what the invocation holds through the gate."""
        envelope = invocation.envelope()
        if isinstance(envelope, WriteProposal):
            await self._file(invocation, envelope)
        elif invocation.is_declared_write and isinstance(envelope, ToolError):
            invocation.result = envelope  # and nothing that came beside it
        elif invocation.is_declared_write and not invocation.failed:
            log.warning(
                "Tool %s is declared to write and returned a %s instead of a WriteProposal; nothing was filed",
                invocation.qualified_name,
                type(invocation.result if envelope is None else envelope).__name__,
            )
            self._refuse(
                invocation,
                invocation.qualified_name,
                RefusalCode.WIREUP_INVALID.value,
                "The tool is declared to write and returned no proposal, so nothing was filed. "
                "It must return a WriteProposal or a ToolError.",
            )

    async def _file(self, invocation: ToolInvocation, proposal: WriteProposal) -> None:
        name = self._name_for(invocation, proposal)
        if invocation.arguments:
            # What the seam carried replaces the proposal's own; an empty map is none (seed; DECISIONS 9).
            proposal = proposal.model_copy(update={"arguments": invocation.arguments})
        try:
            context = await invocation.driver.call(self._provider.review_context, proposal, invocation.turn)
            if context is None:
                raise WireupInvalid("the host found no identity to file the proposal under.")
            _compare_with_declaration(invocation, context.affidavit)
            filing = await self._gate.file.under(
                invocation.driver,
                context.affidavit,
                context.turn,
                tool_name=name,
                arguments=proposal.arguments,
                operation=proposal.operation,
                entry_id=context.entry_id,
            )
        except Refusal as refusal:
            log.warning("The proposal of %s was refused: %s", invocation.qualified_name, refusal)
            self._refuse(invocation, name, refusal.code.value, refusal.reason)
        except Exception as error:
            if self._propagates(error):
                raise
            await self._failed(invocation, name, error)
        else:
            self._hand_back(invocation, proposal, context, filing)

    @staticmethod
    def _name_for(invocation: ToolInvocation, proposal: WriteProposal) -> str:
        """The name that a row is filed under. A declared tool cannot borrow another's, nor its policies (CV-4)."""
        named = proposal.tool_name or invocation.tool_name
        if invocation.descriptor is None or named == invocation.tool_name:
            return named
        log.warning(
            "Tool %s returned a proposal in the name of %r; it is filed under its own", invocation.qualified_name, named
        )
        return invocation.tool_name

    def _hand_back(
        self, invocation: ToolInvocation, proposal: WriteProposal, context: ReviewContext, filing: Filing
    ) -> None:
        undecided = filing.entry.status is ReviewStatus.PENDING and not filing.differs
        # A replay that says anything else than "still waiting" must say it (C10, DECISIONS 9).
        if self._model_view == "proposal" and (filing.created or undecided):
            shown = proposal.model_copy(update={"envelope": context.affidavit, "tool_name": filing.entry.tool_name})
            invocation.result = invocation.cleared = shown
        else:
            invocation.result = receipt_for(filing).to_json_string()
        if self._terminate and filing.card.requires_confirmation:
            invocation.terminate = True

    def _refuse(self, invocation: ToolInvocation, name: str, code: str, message: str) -> None:
        invocation.result = ToolError(tool_name=name, code=code, message=message)

    async def _failed(self, invocation: ToolInvocation, name: str, error: Exception) -> None:
        """The store or the host's provider failed: the model learns that nothing was filed, and people are told too."""
        reference = log_failure(log, f"The proposal of {invocation.qualified_name} could not be filed", error)
        message = f"The proposal could not be filed, and nothing was written. (reference {reference})"
        self._refuse(invocation, name, FILING_FAILED, message)  # first, whatever the telling below does
        self._gate.telemetry.emit(
            "affiant.review.filing_failed",
            {"tool_error.code": FILING_FAILED, "exception.type": type(error).__name__, "correlation.id": reference},
        )
        await self._gate.notify_failure(invocation.driver, message, invocation.turn.conversation_id)


def _compare_with_declaration(invocation: ToolInvocation, record: Affidavit) -> None:
    """Tell the host's log when a record is not what its tool was declared to write. The record counts."""
    declared = invocation.descriptor
    if declared is None or not declared.is_write or not isinstance(record, Affidavit):
        return
    shapes = operation_shape(declared.operation), operation_shape(record.operation_type)
    if shapes[0] != shapes[1] or declared.entity_type not in (None, record.entity_type):
        log.warning(
            "Tool %s is declared as %s of %s and proposed %s of %s; the proposal counts",
            invocation.qualified_name,
            declared.operation,
            declared.entity_type,
            record.operation_type,
            record.entity_type,
        )
