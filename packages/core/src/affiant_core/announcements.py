"""Whom the gate tells what: operators through telemetry, people through the host's transport (TL-1, GT-4)."""

from __future__ import annotations

import logging

from affiant_core.card import EvidenceCard, SystemNotification, Transport
from affiant_core.context import Principal
from affiant_core.docket.model import DocketEntry
from affiant_core.driver import Driver
from affiant_core.policy import Ruling
from affiant_core.telemetry import Telemetry
from affiant_core.vocabulary import ExecutionOutcome, ReviewStatus, TransportEvent
from affiant_core.wire import WireModel

log: logging.Logger = logging.getLogger(__name__)


class Announcer:
    """The gate's voice. Nothing here can change or undo what the gate has written."""

    def __init__(self, telemetry: Telemetry, transport: Transport | None) -> None:
        self.telemetry = telemetry
        self._transport = transport

    async def broadcast(self, driver: Driver, row: DocketEntry, card: EvidenceCard) -> None:
        """Deliver a card, once more if that fails; a filed row stays filed whatever happens here (GT-4)."""
        if self._transport is None:
            return
        failure: Exception | None = None
        for attempt in (1, 2):
            failure = await self._try(driver, TransportEvent.EVIDENCE_CARD_REQUEST, card, row.conversation_id)
            if failure is None:
                return
            log.warning("The card of row %s was not delivered (try %d)", row.entry_id, attempt, exc_info=failure)
        told = {"docket.entry_id": row.entry_id, "exception.type": type(failure).__name__}
        self.telemetry.emit("affiant.review.broadcast_failed", told)
        warning = SystemNotification(
            level="warning", message="A proposal is waiting for review, and its card could not be delivered."
        )
        await self.notify(driver, TransportEvent.SYSTEM_NOTIFICATION, warning, row.conversation_id)

    async def notify_failure(self, driver: Driver, message: str, conversation_id: str) -> None:
        """Tell the people in a conversation, if that is possible, that something went wrong."""
        notice = SystemNotification(level="error", message=message)
        await self.notify(driver, TransportEvent.SYSTEM_NOTIFICATION, notice, conversation_id)

    async def notify(self, driver: Driver, event: TransportEvent, payload: WireModel, group: str) -> None:
        """Deliver a notification if that is possible; by definition nothing depends on it."""
        failure = await self._try(driver, event, payload, group)
        if failure is not None:
            log.warning("A %s notification was not delivered", event.value, exc_info=failure)

    async def _try(self, driver: Driver, event: TransportEvent, payload: WireModel, group: str) -> Exception | None:
        if self._transport is None:
            return None
        try:
            await driver.call(self._transport.send, event, payload, group=group)
        except Exception as error:  # noqa: BLE001  # the transport is the host's; the row stands without it
            return error
        return None

    def filed(self, row: DocketEntry, *, created: bool) -> None:
        """A row was filed, or replayed."""
        self.telemetry.emit(
            "affidavit.filed",
            {
                "gen_ai.tool.name": row.tool_name,
                "gen_ai.conversation.id": row.conversation_id,
                "entry.id": row.entry_id,
                "docket.requirement": row.requirement.kind.value,
                "docket.status": row.status.value,
                "affidavit.field_count": len(row.affidavit.fields),
                "created": created,
            },
        )

    def fired(self, row: DocketEntry, ruling: Ruling) -> None:
        """A Standing Order approved a row."""
        self.transition(ReviewStatus.PENDING, row)
        self.telemetry.emit(
            "standing-order.fired",
            {
                "policy.id": ruling.policy_id,
                "policy.version": ruling.policy_version,
                "entry.id": row.entry_id,
                "risk.score": ruling.risk_score,
            },
        )

    def transition(self, before: ReviewStatus, row: DocketEntry) -> None:
        """A row changed state, by this caller's own write."""
        self.telemetry.emit(
            "docket.transition",
            {
                "entry.id": row.entry_id,
                "gen_ai.conversation.id": row.conversation_id,
                "from": before.value,
                "to": row.status.value,
                "execution": execution_word(row.execution),
                "decision.kind": None if row.decision is None else row.decision.kind.value,
                "attestation.kind": None if row.attestation is None else row.attestation.by.kind,
                "amended": row.amended_affidavit is not None,
            },
        )

    def unauthorized(
        self, entry_id: str, conversation_id: str | None, reason: str, principal: Principal | None, path: str
    ) -> None:
        """An act was refused on identity grounds."""
        self.telemetry.emit(
            "decision.unauthorized",
            {
                "entry.id": entry_id,
                "gen_ai.conversation.id": conversation_id,
                "reason": reason,
                "principal.kind": None if principal is None else principal.kind,
                "path": path,
            },
        )


def execution_word(execution: ExecutionOutcome | None) -> str | None:
    """The wire spelling of an execution outcome, or ``None``."""
    return None if execution is None else execution.value
