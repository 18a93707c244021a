"""Every exception this package raises on purpose.

::

    AffiantError
    ├── Refusal                          the protocol said no: a code and a reason for people
    │   ├── WireupInvalid                the host is wired wrongly, or a call came without its context
    │   │   └── WiringError              every fault found at start-up, in one error
    │   ├── CoverageRefused              a write tool that the gate cannot stand in front of
    │   ├── SubstanceRefused             a proposal that swears to nothing
    │   ├── DecisionUnauthorized         nobody, or somebody who may not
    │   ├── DecisionNotPending           the row cannot take this act in the state it is in
    │   ├── DecisionExpired              the deadline has passed
    │   ├── DecisionLostRace             another caller's act was first
    │   ├── EntryNotFound                no such row in this tenant
    │   ├── ExecutionAlreadyRecorded     an execution is reported once
    │   ├── ApproverNotListed            a person whom a MultiParty row does not ask
    │   ├── ApproverAlreadyDecided       an approver's second decision
    │   └── DecisionNotAmendable         a MultiParty row takes no amendments
    ├── ValueRefused                     a Python value with no honest JSON spelling
    ├── WireError                        text or data that is not what it should be
    │   ├── NotAnEnvelope
    │   └── CursorInvalid
    ├── AmendmentRefused                 an amendment that the record cannot take
    ├── SynchronousCallError             an asynchronous filter inside a synchronous call
    └── DocketError                      the store itself
        ├── DocketUrlInvalid
        ├── DocketUnavailable
        ├── DocketCorrupt
        └── DocketSchemaTooNew

A ``Refusal`` is an answer, not a crash: its ``reason`` names rules, fields and kinds and never carries a sworn value,
so it may be shown to a model and to a person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar


class RefusalCode(StrEnum):
    """The protocol's refusal codes, in registry order. Names are only ever added (RULES, "Refusal codes")."""

    REQUIREMENT_NOT_IMPLEMENTED = "requirement-not-implemented"
    COVERAGE_REFUSED = "coverage-refused"
    SUBSTANCE_REFUSED = "substance-refused"
    DECISION_UNAUTHORIZED = "decision-unauthorized"
    DECISION_NOT_PENDING = "decision-not-pending"
    DECISION_EXPIRED = "decision-expired"
    DECISION_LOST_RACE = "decision-lost-race"
    WIREUP_INVALID = "wireup-invalid"
    ENTRY_NOT_FOUND = "entry-not-found"
    EXECUTION_ALREADY_RECORDED = "execution-already-recorded"
    APPROVER_NOT_LISTED = "approver-not-listed"
    APPROVER_ALREADY_DECIDED = "approver-already-decided"
    DECISION_NOT_AMENDABLE = "decision-not-amendable"


class AffiantError(Exception):
    """Base of every exception in this package."""


class Refusal(AffiantError):
    """The protocol refused an act. ``code`` is stable; ``reason`` is a sentence; ``details`` are facts beside it."""

    code: ClassVar[RefusalCode]

    def __init__(self, reason: str, **details: object) -> None:
        super().__init__(reason)
        self.reason = reason
        self.details: Mapping[str, object] = MappingProxyType(details)

    def __str__(self) -> str:
        return f"{self.code.value}: {self.reason}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.reason, dict(self.details))


def _rebuilt(kind: type[Refusal], reason: str, details: dict[str, object]) -> Refusal:
    """A refusal as it was pickled, so that it can cross to another process."""
    return kind(reason, **details)


class WireupInvalid(Refusal):
    """Raised when the host is wired wrongly, a policy breaks its contract, or a call has no context (CV-1, CV-2)."""

    code = RefusalCode.WIREUP_INVALID


@dataclass(frozen=True, slots=True)
class WiringFault:
    """One thing that is wrong with the wiring: whose, what, and what to write instead.

    ``code`` is ``coverage-refused`` for a tool that no gate can stand in front of (CV-4).
    """

    subject: str
    fault: str
    remedy: str
    code: RefusalCode = RefusalCode.WIREUP_INVALID

    def __str__(self) -> str:
        return f"{self.subject}: {self.fault} {self.remedy}"


class WiringError(WireupInvalid):
    """Raised at start-up with every fault that was found, so that one run shows them all."""

    def __init__(self, faults: Sequence[WiringFault]) -> None:
        self.faults: tuple[WiringFault, ...] = tuple(faults)
        listing = "\n".join(f"  - {fault}" for fault in self.faults)
        count = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        super().__init__(f"{count} in the wiring:\n{listing}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.faults,)


class CoverageRefused(Refusal):
    """Raised when a write tool cannot be intercepted and the host has not declared that (CV-4)."""

    code = RefusalCode.COVERAGE_REFUSED


class SubstanceRefused(Refusal):
    """Raised when a proposal swears to nothing, or holds a value of no known origin (GT-3)."""

    code = RefusalCode.SUBSTANCE_REFUSED


class DecisionUnauthorized(Refusal):
    """Raised when nobody is named, or the named principal may not do this (AZ-2, AZ-3)."""

    code = RefusalCode.DECISION_UNAUTHORIZED


class DecisionNotPending(Refusal):
    """Raised when the row's state does not allow the act; a blocked row says so in ``details`` (DK-1)."""

    code = RefusalCode.DECISION_NOT_PENDING


class DecisionExpired(Refusal):
    """Raised when the act comes at or after the row's deadline (DK-1)."""

    code = RefusalCode.DECISION_EXPIRED


class DecisionLostRace(Refusal):
    """Raised when the row was pending on reading and another caller's act was written first (DK-1)."""

    code = RefusalCode.DECISION_LOST_RACE


class EntryNotFound(Refusal):
    """Raised when the tenant has no such row; another tenant's row looks exactly the same (AZ-2)."""

    code = RefusalCode.ENTRY_NOT_FOUND


class ExecutionAlreadyRecorded(Refusal):
    """Raised on a second execution report; the first one stands (DK-1)."""

    code = RefusalCode.EXECUTION_ALREADY_RECORDED


class ApproverNotListed(Refusal):
    """Raised when a person decides on a ``MultiParty`` row that does not list them (AZ-4)."""

    code = RefusalCode.APPROVER_NOT_LISTED


class ApproverAlreadyDecided(Refusal):
    """Raised when an approver decides a second time on a ``MultiParty`` row; the first decision stands (AZ-4)."""

    code = RefusalCode.APPROVER_ALREADY_DECIDED


class DecisionNotAmendable(Refusal):
    """Raised when a decision on a ``MultiParty`` row carries amendments; nothing is recorded (AZ-4, DK-2)."""

    code = RefusalCode.DECISION_NOT_AMENDABLE


class ValueRefused(AffiantError):
    """Raised when a Python value has no honest JSON spelling. ``path`` names the place, never the value (DECISIONS 20).

    It is neither a ``ValueError`` nor a ``TypeError`` on purpose: pydantic would fold those into its own error.
    """

    def __init__(self, path: str, fault: str) -> None:
        super().__init__(f"{path}: {fault}")
        self.path = path
        self.fault = fault

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.fault)


class WireError(AffiantError, ValueError):
    """Raised when JSON text, or data read from it, is not what it claims to be. The message quotes no value."""


class NotAnEnvelope(WireError):
    """Raised by ``parse_envelope`` when the text is not a tool envelope (DECISIONS 4)."""


class CursorInvalid(WireError):
    """Raised when a page cursor is unreadable or belongs to another listing or scope (DK-3)."""


class AmendmentRefused(AffiantError, ValueError):
    """Raised when an amendment names a field that the record does not propose; nothing is changed (DK-2)."""


class SynchronousCallError(AffiantError):
    """Raised when a host's asynchronous filter suspends inside a synchronous pipeline call."""


class DocketError(AffiantError):
    """Base of the store's own faults."""


class DocketUrlInvalid(DocketError, ValueError):
    """Raised when a docket URL names no store of this package."""


class DocketUnavailable(DocketError):
    """Raised when the store cannot be reached or written: locked, full, read-only, gone. Nothing was changed."""


class DocketCorrupt(DocketError):
    """Raised when a stored row or the database file cannot be read as what it should be."""


class DocketSchemaTooNew(DocketError):
    """Raised when the database was written by a newer version of this package."""
