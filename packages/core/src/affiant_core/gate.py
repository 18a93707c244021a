"""The review gate: the only place that changes a Docket row's status (GT, DK-1, AZ).

It files what write tools propose, lets the right person decide once, records what the host's executor did, and never
writes to a host's own store. Every act takes an explicit context (GT-2), and is offered as ``await gate.act(...)`` and
as ``gate.act.sync(...)``. It is the longest module here because no status may change anywhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from affiant_core.affidavit import Affidavit, hollow_or_empty, misshapen
from affiant_core.announcements import Announcer, execution_word
from affiant_core.authority import Act, Approve, AuthorizationRequest, Authorize, Decision, Reject, attestor_for
from affiant_core.card import DocketExpired, EvidenceCard, Transport, card_for
from affiant_core.context import ActContext, Principal, TurnContext, person_behind, require_act, require_turn
from affiant_core.decisions import (
    DecidingPerson,
    amendments_of,
    approval_of,
    decided_by_one,
    execution_detail_of,
    folded_by,
    require_open,
)
from affiant_core.docket.model import (
    DecisionRecord,
    DocketEntry,
    PreservedAmendments,
)
from affiant_core.docket.store import DocketStore, Scope, Sweep, Transition, TransitionGuard
from affiant_core.driver import Driver, operation
from affiant_core.envelope import ProposedOperation
from affiant_core.errors import (
    DecisionExpired,
    DecisionLostRace,
    DecisionNotPending,
    DecisionUnauthorized,
    EntryNotFound,
    ExecutionAlreadyRecorded,
    SubstanceRefused,
    WireupInvalid,
    WiringError,
    WiringFault,
)
from affiant_core.filing import Proposal, build_row, write_hash
from affiant_core.policy import Policy, PolicyChain, PolicyRequest, RiskScorer, Ruling
from affiant_core.reading import Clock, DocketReader, require_id
from affiant_core.telemetry import Telemetry
from affiant_core.values import JSON, utc_now
from affiant_core.vocabulary import (
    CoverageCategory,
    DecisionKind,
    ExecutionOutcome,
    ReviewRequirement,
    ReviewStatus,
    TransportEvent,
)
from affiant_core.wiring import gate_faults

log: logging.Logger = logging.getLogger(__name__)

DEFAULT_TTL = timedelta(minutes=30)
"""How long a row stays open when neither the verdict nor its policy says (REFERENCE 10)."""


@dataclass(frozen=True, slots=True)
class Filing:
    """What filing came to: the row as it reads, whether this call created it, and the card that was shown.

    ``differs`` is true when the call replayed an earlier row whose proposal would write something else: the new
    proposal was not filed (DECISIONS 9).
    """

    entry: DocketEntry
    created: bool
    card: EvidenceCard
    differs: bool = False


class ReviewGate(DocketReader):
    """Files proposals and takes decisions on them.

    ``authorize`` is the host's say on who may do what; only ``True`` is a yes. ``policies`` are asked in order.
    ``default_ttl`` is how long a row stays open. ``transport`` delivers cards. ``uncovered`` names tools that the gate
    cannot stand in front of, with the category why: their proposals are filed blocked (CV-4).

    Raises ``WiringError`` with every fault of the wiring (CV-1).
    """

    def __init__(
        self,
        *,
        docket: DocketStore,
        authorize: Authorize,
        policies: Sequence[Policy] = (),
        default_ttl: timedelta = DEFAULT_TTL,
        risk_scorer: RiskScorer | None = None,
        transport: Transport | None = None,
        uncovered: Mapping[str, CoverageCategory] | None = None,
        clock: Clock = utc_now,
        telemetry: Telemetry | None = None,
    ) -> None:
        if not isinstance(policies, Iterable):
            raise WiringError([WiringFault("policies", "it is one thing and not a list.", "Pass policies=[...].")])
        policies, uncovered = tuple(policies), dict(uncovered or {})  # read once: the caller's may be one-way or change
        faults = gate_faults(docket, authorize, policies, default_ttl, risk_scorer, uncovered)
        if faults:
            raise WiringError(faults)
        super().__init__(docket, clock)
        self._authorize = authorize
        self._announcer = Announcer(telemetry or Telemetry(), transport)
        self._uncovered = {tool: CoverageCategory(category) for tool, category in uncovered.items()}
        self._policies = PolicyChain(
            policies, default_ttl=default_ttl, risk_scorer=risk_scorer, telemetry=self.telemetry
        )

    @property
    def telemetry(self) -> Telemetry:
        """Where the gate's events go."""
        return self._announcer.telemetry

    # --- filing ----------------------------------------------------------------------------------------------------

    @operation
    async def file(
        self,
        driver: Driver,
        affidavit: Affidavit,
        context: TurnContext,
        *,
        tool_name: str,
        arguments: Mapping[str, JSON] | None = None,
        operation: ProposedOperation | None = None,
        entry_id: str | None = None,
    ) -> Filing:
        """File a proposal, or return the row that already has its identity (GT-1, steps 6 to 9; GT-4).

        From the insert on, filing is carried through even when the caller is cancelled.

        Raises ``WireupInvalid`` for a missing context, a misshapen record or a broken policy, ``SubstanceRefused`` for
        a record that swears to nothing, ``ValueRefused`` for arguments that are not JSON, ``TypeError`` for things of
        another type, ``DocketError`` when the store fails. Nothing is filed then.
        """
        turn = require_turn(context, "ReviewGate.file")
        for name, given in (("tool_name", tool_name), ("entry_id", entry_id)):
            if (not isinstance(given, str) or not given) and (name == "tool_name" or given is not None):
                raise TypeError(f"{name} is text that is not empty, and not a {type(given).__name__}.")
        if arguments is not None and not isinstance(arguments, Mapping):
            raise TypeError(f"arguments is a mapping or None, not a {type(arguments).__name__}.")
        if operation is not None and not isinstance(operation, ProposedOperation):
            raise TypeError(f"operation is a ProposedOperation or None, not a {type(operation).__name__}.")
        if not isinstance(affidavit, Affidavit):
            raise WireupInvalid(f"{tool_name}: the gate files an Affidavit, not a {type(affidavit).__name__}.")
        proposal = Proposal(tool_name, affidavit, turn.conversation_id, arguments, operation, entry_id)
        return await self._file(driver, proposal, turn)

    async def _file(self, driver: Driver, proposal: Proposal, context: ActContext) -> Filing:
        # A copy, so that what was judged is what is filed, whatever the caller does with the record meanwhile; and with
        # numbers of our own, so that no policy goes by what a proposal says of itself (AF-2).
        own = proposal.affidavit.detached()
        proposal = replace(proposal, affidavit=own.with_fields(own.fields))
        self._require_substance(proposal)
        entry_id = proposal.identity(context.tenant_id)
        existing = await self._store(driver, self._docket.get, context.tenant_id, entry_id)
        if existing is not None:
            return await self._replay(driver, existing, proposal, self.now())
        # Policies get a copy, and may take their time: they can neither change the record nor hold up a cancellation.
        request = PolicyRequest(proposal.tool_name, proposal.affidavit.detached(), context)
        ruling = await self._policies.rule(driver, request, self.now())
        return await driver.shield(self._commit(driver, proposal, context, ruling, entry_id))

    async def _commit(
        self, driver: Driver, proposal: Proposal, context: ActContext, ruling: Ruling, entry_id: str
    ) -> Filing:
        """Write the row and tell of it, whole, whatever becomes of the caller (DECISIONS 14)."""
        now = self.now()  # after the policies: how long they take is not taken from the reviewer (GT-4)
        category = self._uncovered.get(proposal.tool_name)
        row = build_row(proposal, context, ruling, entry_id=entry_id, now=now, category=category)
        filed = await self._store(driver, self._docket.file, row)
        if not filed.created:  # another caller filed the same proposal in between
            return await self._replay(driver, filed.entry, proposal, now)
        self._announcer.filed(row, created=True)
        if category is not None:
            self.telemetry.emit(
                "coverage.refused",
                {"gen_ai.tool.name": row.tool_name, "coverage.category": category.value, "phase": "file"},
            )
        if row.status is ReviewStatus.APPROVED:
            self._announcer.fired(row, ruling)
        card = card_for(row, now)
        await self._announcer.broadcast(driver, row, card)
        return Filing(row, created=True, card=card)

    def _require_substance(self, proposal: Proposal) -> None:
        fault = misshapen(proposal.affidavit)
        if fault:
            raise WireupInvalid(f"{proposal.tool_name}: {fault}")
        fault = hollow_or_empty(proposal.affidavit)
        if fault:
            self.telemetry.emit(
                "affidavit.refused.substance",
                {
                    "gen_ai.tool.name": proposal.tool_name,
                    "gen_ai.conversation.id": proposal.conversation_id,
                    "affidavit.field_count": len(proposal.affidavit.fields),
                    "reason": fault,
                },
            )
            raise SubstanceRefused(fault)

    async def _replay(self, driver: Driver, stored: DocketEntry, proposal: Proposal, now: datetime) -> Filing:
        """Answer a proposal with the row that has its identity: no policy runs, the deadline stays (GT-4)."""
        row = stored.as_read(now)
        self._announcer.filed(row, created=False)
        # A host's own row id may be used twice; a derived one holds the tool's name and the conversation.
        same_origin = (stored.tool_name, stored.conversation_id) == (proposal.tool_name, proposal.conversation_id)
        differs = not same_origin or write_hash(stored.affidavit) != write_hash(proposal.affidavit)
        if differs:
            log.warning(
                "%s proposed another write under the identity of row %s, which stays as it is; "
                "the new proposal was not filed",
                proposal.tool_name,
                row.entry_id,
            )
            self.telemetry.emit(
                "affiant.review.replay_differs",
                {
                    "gen_ai.tool.name": proposal.tool_name,
                    "gen_ai.conversation.id": row.conversation_id,
                    "entry.id": row.entry_id,
                },
            )
        card = card_for(row, now)
        if row.status is ReviewStatus.PENDING:
            await self._announcer.broadcast(driver, row, card)
        return Filing(row, created=False, card=card, differs=differs)

    async def notify_failure(self, driver: Driver, message: str, conversation_id: str) -> None:
        """Tell the people in a conversation, if that is possible, that a proposal could not be filed."""
        await self._announcer.notify_failure(driver, message, conversation_id)

    # --- deciding --------------------------------------------------------------------------------------------------

    @operation
    async def decide(self, driver: Driver, entry_id: str, decision: Decision, context: ActContext) -> DocketEntry:
        """Approve, amend or reject a pending row; the returned row is what the host's executor acts on (DK-1, AZ-2).

        The checks run in this order, and a refusal records nothing: identity, tenant, the host's authorization,
        deadline, state, and on a ``MultiParty`` row the approver. A decision that comes too late keeps its amendments
        for a resubmission.

        Raises ``DecisionUnauthorized``, ``EntryNotFound``, ``DecisionExpired``, ``DecisionNotPending``,
        ``DecisionLostRace``, ``ApproverNotListed``, ``ApproverAlreadyDecided``, ``DecisionNotAmendable``, and
        ``AmendmentRefused`` or ``ValueRefused`` for an amendment that the record cannot take.
        """
        if not isinstance(decision, Approve | Reject):
            raise TypeError("a decision is an Approve or a Reject.")
        principal = self._require_principal(context, "ReviewGate.decide", "decide", entry_id)
        person = attestor_for(principal)
        if person is None:
            self._announcer.unauthorized(entry_id, None, "machine-attestation", principal, "decide")
            raise DecisionUnauthorized(
                "AZ-3: a service decides only for a person: it needs both the asserted member and the relayed message."
            )
        amendments = amendments_of(decision)
        act: Act = "approve" if isinstance(decision, Approve) else "reject"
        row = await self._load(driver, entry_id, context, principal, act, "decide")
        now = self.now()
        if row.as_read(now).status is ReviewStatus.EXPIRED:
            kept = await self._keep_late_amendments(driver, row, amendments, principal, now)
            raise DecisionExpired("DK-1: the deadline has passed.", amendments_preserved=kept)
        require_open(row)
        if row.requirement.kind is ReviewRequirement.MULTI_PARTY:
            return await self._decide_among_many(driver, row, decision, person, principal, now)
        changes = decided_by_one(row, decision, amendments, person, principal, now)
        change = Transition(TransitionGuard.UNDECIDED, now, changes, clock=self.now)
        decided = await self._transition(driver, row, change)
        if decided is None:  # the deadline passed while the store was busy
            kept = await self._keep_late_amendments(driver, row, amendments, principal, self.now())
            raise DecisionExpired("DK-1: the deadline has passed.", amendments_preserved=kept)
        return decided

    async def _keep_late_amendments(
        self,
        driver: Driver,
        row: DocketEntry,
        amendments: dict[str, JSON] | None,
        principal: Principal,
        now: datetime,
    ) -> bool:
        """Whether the row keeps them: the first late map is, if its bearer could have decided the row alone (DK-1)."""
        if not amendments or row.approvals is not None or row.blocked is not None:
            return False
        by = person_behind(principal)
        row.affidavit.amend(amendments, by=by, entry_id=row.entry_id, at=now)  # refuses a name that is not proposed
        kept = PreservedAmendments(amendments=amendments, at=now, by=by)
        done = await self._store(driver, self._docket.preserve_amendments, row.tenant_id, row.entry_id, kept, now)
        return done.applied

    async def _decide_among_many(
        self,
        driver: Driver,
        row: DocketEntry,
        decision: Decision,
        person: DecidingPerson,
        principal: Principal,
        now: datetime,
    ) -> DocketEntry:
        """One approver's decision; the last one needed folds the row in the same guarded write (AZ-4)."""
        for _ in range(len(row.requirement.approvers or ()) + 1):
            approvals = (*(row.approvals or ()), approval_of(row, decision, person, principal, now))
            change = Transition(
                TransitionGuard.UNDECIDED,
                now,
                {"approvals": approvals, **folded_by(row, approvals, now)},
                expected_approvals=len(row.approvals or ()),
                clock=self.now,
            )
            applied = await self._store(driver, self._docket.transition, row.tenant_id, row.entry_id, change)
            if applied.entry is None:
                raise EntryNotFound("AZ-2: this tenant has no such row.")
            if applied.applied:
                if applied.entry.status is not ReviewStatus.PENDING:
                    self._announcer.transition(row.status, applied.entry)
                return applied.entry
            # Another approver was first: look at what they wrote, with every check, and try on top of it.
            row = applied.entry
            if row.as_read(self.now()).status is ReviewStatus.EXPIRED:
                raise DecisionExpired("DK-1: the deadline has passed.", amendments_preserved=False)
            if row.status is not ReviewStatus.PENDING:
                break
        raise DecisionLostRace("DK-1: another decision was first.", status=row.status.value)

    # --- reporting, withdrawing, resubmitting ----------------------------------------------------------------------

    @operation
    async def report(
        self,
        driver: Driver,
        entry_id: str,
        outcome: ExecutionOutcome | Literal["executed", "failed"],
        context: ActContext,
        *,
        detail: Mapping[str, object] | None = None,
    ) -> DocketEntry:
        """Record, once, what the host's executor did with an approved row (DK-1, AZ-5).

        ``detail`` is an object with a ``code`` of the host's own and whatever else helps. The row's status stays
        ``approved``. Raises ``DecisionUnauthorized``, ``EntryNotFound``, ``DecisionNotPending`` for a row that is not
        approved, ``ExecutionAlreadyRecorded`` for a second report, ``TypeError`` for a detail that is no such object.
        """
        if outcome not in (ExecutionOutcome.EXECUTED, ExecutionOutcome.FAILED):
            raise ValueError("an execution report says 'executed' or 'failed'.")
        reported = ExecutionOutcome(outcome)
        written = execution_detail_of(detail)
        principal = self._require_principal(context, "ReviewGate.report", "mark-executed", entry_id)
        row = await self._load(driver, entry_id, context, principal, "report", "mark-executed")
        read = row.as_read(self.now())
        if read.status is not ReviewStatus.APPROVED:
            raise DecisionNotPending(f"DK-1: the row is {read.status.value}, not approved.", status=read.status.value)
        if row.attestation is None:
            raise DecisionUnauthorized("AZ-5: the row carries no attestation.")
        applied = await self._store(
            driver, self._docket.record_execution, row.tenant_id, row.entry_id, reported, written
        )
        if applied.entry is None:
            raise EntryNotFound("AZ-2: this tenant has no such row.")
        if not applied.applied:
            raise ExecutionAlreadyRecorded(
                "DK-1: the host reports once, and has reported.", execution=execution_word(applied.entry.execution)
            )
        self._announcer.transition(row.status, applied.entry)
        return applied.entry

    @operation
    async def withdraw(self, driver: Driver, entry_id: str, reason: str, context: ActContext) -> DocketEntry:
        """Take back a pending row, blocked or not: the host's own act, for which no authorization is asked (DK-1).

        Raises ``ValueError`` for a blank reason, ``DecisionUnauthorized`` for an unresolved principal,
        ``EntryNotFound``, ``DecisionExpired`` or ``DecisionNotPending``.
        """
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError("a withdrawal states its reason.")
        principal = self._require_principal(context, "ReviewGate.withdraw", "withdraw", entry_id)
        row = await self._find(driver, entry_id, context, principal, "withdraw")
        now = self.now()
        status = row.as_read(now).status
        if status is ReviewStatus.EXPIRED:
            raise DecisionExpired("DK-1: the deadline has passed.", amendments_preserved=False)
        if status is not ReviewStatus.PENDING:
            raise DecisionNotPending(f"DK-1: the row is {status.value}, not pending.", status=status.value)
        record = DecisionRecord(kind=DecisionKind.WITHDRAW, reason=reason, at=now, by=person_behind(principal))
        changes = {"status": ReviewStatus.WITHDRAWN, "decision": record, "decided_at": now}
        withdrawn = await self._transition(driver, row, Transition(TransitionGuard.OPEN, now, changes, clock=self.now))
        if withdrawn is None:
            raise DecisionExpired("DK-1: the deadline has passed.", amendments_preserved=False)
        return withdrawn

    @operation
    async def resubmit(self, driver: Driver, entry_id: str, context: ActContext) -> Filing:
        """File an expired row's proposal again, as a new row with a fresh verdict and deadline (DK-1).

        Amendments that came too late are filled in. Resubmitting the same row twice returns the same new row. Raises
        ``DecisionUnauthorized``, ``EntryNotFound``, ``DecisionNotPending`` for a row that has not expired, and what
        :meth:`file` raises.
        """
        principal = self._require_principal(context, "ReviewGate.resubmit", "resubmit", entry_id)
        row = await self._load(driver, entry_id, context, principal, "resubmit", "resubmit")
        now = self.now()
        status = row.as_read(now).status
        if status is not ReviewStatus.EXPIRED:
            raise DecisionNotPending(f"DK-1: the row is {status.value}; only an expired row is resubmitted.")
        return await driver.shield(self._resubmit(driver, row, context, now))

    async def _resubmit(self, driver: Driver, row: DocketEntry, context: ActContext, now: datetime) -> Filing:
        if row.status is ReviewStatus.PENDING:
            # Written down first: from here on nobody's clock lets the old row be decided beside its successor.
            expiry = Transition(
                TransitionGuard.DUE, now, {"status": ReviewStatus.EXPIRED, "decided_at": row.expires_at}
            )
            settled = await self._store(driver, self._docket.transition, row.tenant_id, row.entry_id, expiry)
            if settled.entry is None or settled.entry.status is not ReviewStatus.EXPIRED:
                raise DecisionLostRace("DK-1: another act was first.")
            row = settled.entry
        late = row.preserved_amendments
        record = _with_presentation(row).model_copy(update={"created_at": now})
        if late is not None:
            record = record.prefill(late.amendments, by=late.by, entry_id=row.entry_id, at=late.at)
        proposal = Proposal(
            row.tool_name,
            record,
            row.conversation_id,
            supersedes=row.entry_id,
            prior_amendments=None if late is None else late.amendments,
            requested_by=row.requested_by,
        )
        # The new row first: a crash in between leaves no link to a row that does not exist, and a second call mends it.
        filing = await self._file(driver, proposal, context)
        await self._store(
            driver, self._docket.record_supersession, row.tenant_id, row.entry_id, filing.entry.entry_id, now
        )
        return filing

    # --- sweeping ------------------------------------------------------------------------------------------------

    @operation
    async def expire_due(
        self, driver: Driver, *, tenant_id: str | None = None, conversation_id: str | None = None, limit: int = 100
    ) -> Sweep:
        """Write down the expiry of at most ``limit`` rows whose deadline has passed, oldest first (DK-3).

        Correctness never depends on a sweep: a row reads expired from its deadline on. Without a ``tenant_id`` all
        tenants are swept. Raises ``ValueError`` for a conversation without its tenant.
        """
        if tenant_id is None and conversation_id is not None:
            raise ValueError("a conversation is named together with its tenant.")
        scope = Scope(tenant_id, conversation_id)
        sweep = await self._store(driver, self._docket.expire_due, self.now(), scope, limit=limit)
        for row in sweep.entries:
            self.telemetry.emit("docket.expired", {"entry.id": row.entry_id})
            self._announcer.transition(ReviewStatus.PENDING, row)
            notice = DocketExpired(docket_id=row.entry_id)
            await self._announcer.notify(driver, TransportEvent.DOCKET_EXPIRED, notice, row.conversation_id)
        return sweep

    # --- checks ----------------------------------------------------------------------------------------------------

    def _require_principal(self, context: object, where: str, path: str, entry_id: str) -> Principal:
        principal = require_act(context, where).principal
        if principal is None:
            self._announcer.unauthorized(entry_id, None, "identity-unresolved", None, path)
            raise DecisionUnauthorized("AZ-2: nobody is named who could do this.")
        return principal

    async def _find(
        self, driver: Driver, entry_id: str, context: ActContext, principal: Principal, path: str
    ) -> DocketEntry:
        row = await self._store(driver, self._docket.get, context.tenant_id, require_id(entry_id))
        if row is not None:
            return row
        if await self._store(driver, self._docket.belongs_elsewhere, context.tenant_id, entry_id):
            self._announcer.unauthorized(entry_id, None, "tenant-mismatch", principal, path)
        raise EntryNotFound("AZ-2: this tenant has no such row.")

    async def _load(
        self, driver: Driver, entry_id: str, context: ActContext, principal: Principal, act: Act, path: str
    ) -> DocketEntry:
        row = await self._find(driver, entry_id, context, principal, path)
        try:
            request = AuthorizationRequest(act, principal, row.as_read(self.now()).detached())
            answer: object = await driver.call(self._authorize, request)
        except Exception:  # whatever a host's port raises is a no, and the log has it
            log.exception("The authorization port raised for row %s; that is a no", entry_id)
            answer = False
        if answer is True:
            return row
        if answer is not False:
            log.warning("The authorization port answered with a %s; only True is a yes", type(answer).__name__)
        self._announcer.unauthorized(entry_id, row.conversation_id, "not-authorized", principal, path)
        raise DecisionUnauthorized("AZ-2: the host does not allow this principal to do this.")

    async def _transition(self, driver: Driver, row: DocketEntry, change: Transition) -> DocketEntry | None:
        """The row after a guarded change, told of; ``None`` when its deadline passed before the store could write."""
        return await driver.shield(self._change(driver, row, change))

    async def _change(self, driver: Driver, row: DocketEntry, change: Transition) -> DocketEntry | None:
        applied = await self._store(driver, self._docket.transition, row.tenant_id, row.entry_id, change)
        if applied.entry is None:
            raise EntryNotFound("AZ-2: this tenant has no such row.")
        if applied.applied:
            self._announcer.transition(row.status, applied.entry)
            return applied.entry
        if applied.entry.as_read(self.now()).status is ReviewStatus.EXPIRED:
            return None
        raise DecisionLostRace("DK-1: another act was first.", status=applied.entry.status.value)


# --- pure helpers --------------------------------------------------------------------------------------------------


def _with_presentation(row: DocketEntry) -> Affidavit:
    """The row's proposal as it was first put, with its hints, its own warnings and the host's own verb."""
    hints = {hint.name: hint for hint in row.presentation.hints}
    fields = [
        field.model_copy(
            update={"allowed_values": hints[field.name].allowed_values, "pattern": hints[field.name].pattern}
        )
        if field.name in hints
        else field
        for field in row.affidavit.fields
    ]
    verb = row.presentation.host_operation or row.affidavit.operation_type
    return row.affidavit.model_copy(update={"operation_type": verb, "warnings": row.presentation.warnings}).with_fields(
        fields
    )
