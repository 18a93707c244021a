"""What the properties are tried on."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.envelope import EntityRef, ProposedOperation, ReadResult, ToolError, WriteProposal
from affiant_core.provenance import (
    ComputationRef,
    ExternalRef,
    FormInput,
    ProvenanceChain,
    ProvenanceTag,
    ReviewerAct,
    UtteranceSpan,
    UtteranceSpanRef,
)
from affiant_core.values import MAX_SAFE_INTEGER
from affiant_core.vocabulary import ProvenanceSource

# Speed is no property here: nothing fails by the wall clock.
modest = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
few = settings(modest, max_examples=20)  # for whole records, which are slow to draw


def made(model, **members):
    """Records of ``model``; ``st.builds`` would take its aliases for further arguments."""
    return st.fixed_dictionaries(members).map(lambda drawn: model(**drawn))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = texts.filter(bool)
integers = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
floats = st.floats(allow_nan=False, allow_infinity=False)
instants = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
scalars = st.none() | st.booleans() | integers | floats | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(texts, values, max_size=3)

bindings = st.one_of(
    st.none(),
    st.builds(FormInput.of, names),
    st.builds(ReviewerAct.on, names, instants),
    st.builds(ExternalRef.of, names, names, fetched_at=st.none() | instants),
    st.builds(ComputationRef.of, names, st.lists(names, max_size=3)),
    made(
        UtteranceSpanRef,
        offset=st.integers(0, 10**6),
        length=st.integers(0, 10**6),
        hash=names,
        message_id=st.none() | names,
    ).map(lambda ref: UtteranceSpan(ref=ref)),
)

tags = made(
    ProvenanceTag,
    source=st.sampled_from(ProvenanceSource),
    confidence=st.floats() | st.sampled_from([0.0, 0.5, 1.0]),
    note=st.none() | texts,
    at=instants,
    conversation_turn=st.none() | integers,
    binding=bindings,
)
chains = made(ProvenanceChain, current=tags, prior=st.lists(tags, max_size=2).map(tuple))

fields = st.builds(
    AffidavitField.of,
    names,
    values,
    tags | chains,
    previous=scalars,
    mandatory=st.booleans(),
    allowed_values=st.none() | st.lists(scalars, max_size=2),
    pattern=st.none() | texts,
)

affidavits = st.builds(
    Affidavit.create,
    operation_type=st.sampled_from(["WriteCreate", "WriteUpdate", "update", "ReviseInvoice"]),
    entity_type=names,
    entity_id=st.none() | names,
    fields=st.lists(fields, max_size=3, unique_by=lambda field: field.name),
    warnings=st.lists(texts, max_size=2),
    requires_confirmation=st.booleans(),
    conversation_turn=st.none() | integers,
    created_at=st.none() | instants,
)

entities = made(EntityRef, entity_type=names, entity_id=names, display_name=texts, fields=objects)
reads = made(
    ReadResult,
    summary=texts,
    markdown=texts,
    entities=st.lists(entities, max_size=2).map(tuple),
    tool_name=names,
    timestamp=instants,
)
proposals = made(
    WriteProposal,
    envelope=values,
    arguments=st.none() | objects,
    operation=st.none()
    | made(
        ProposedOperation,
        kind=st.sampled_from(["create", "update"]),
        entity_type=names,
        entity_id=st.none() | names,
        fields=st.lists(names, max_size=3).map(tuple),
    ),
    tool_name=names,
    timestamp=instants,
)
errors = made(ToolError, code=names, message=texts, retryable=st.booleans(), tool_name=names, timestamp=instants)
