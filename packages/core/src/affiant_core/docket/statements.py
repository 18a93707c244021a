"""The statements of a SQL Docket, each built once. They say nothing that one dialect alone understands.

A guard is always the whole ``WHERE`` clause of one ``UPDATE``: of any number of racing callers at most one finds the
row as the guard wants it. The one exception to the common tongue is the insert: each dialect has a class of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ClauseElement,
    ColumnElement,
    Dialect,
    Text,
    and_,
    bindparam,
    case,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.compiler import SQLCompiler

from affiant_core.docket.migrations import awaits_execution, docket_entries, is_pending
from affiant_core.docket.store import Listing, TransitionGuard
from affiant_core.vocabulary import ReviewStatus

_columns = docket_entries.c

COLUMN_NAMES: tuple[str, ...] = tuple(column.name for column in docket_entries.columns)
"""The columns of a row, in the order in which a statement returns them."""


def _number(name: str) -> BindParameter[Any]:
    return bindparam(name, type_=BigInteger)


_in_tenant = _columns.tenant_id == bindparam("at_tenant", type_=Text)
_in_conversation = _columns.conversation_id == bindparam("at_conversation", type_=Text)
_has_id = _columns.entry_id == bindparam("at_entry", type_=Text)
_is_due = _columns.expires_at <= _number("at_now")
_is_early = _columns.expires_at > _number("at_now")
_reads_expired = or_(_columns.status == ReviewStatus.EXPIRED.value, and_(is_pending, _is_due))

_LISTED: Mapping[Listing, tuple[ColumnElement[bool], ...]] = {
    Listing.PENDING: (is_pending, _is_early),
    Listing.APPROVED_UNEXECUTED: (awaits_execution,),
    Listing.ALL: (),
}

_GUARDS: Mapping[TransitionGuard, tuple[ColumnElement[bool], ...]] = {
    TransitionGuard.UNDECIDED: (is_pending, _is_early, _columns.blocked.is_(None)),
    TransitionGuard.OPEN: (is_pending, _is_early),
    TransitionGuard.DUE: (is_pending, _is_due),
}


def parameters_for(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that write ``columns``; the guards' parameters have names of their own."""
    return {f"new_{name}": value for name, value in columns.items()}


def _new(names: Sequence[str]) -> dict[str, BindParameter[Any]]:
    return {name: bindparam(f"new_{name}", type_=_columns[name].type) for name in names}


# --- reads ---------------------------------------------------------------------------------------------------------

GET: ClauseElement = select(docket_entries).where(_in_tenant, _has_id)
BELONGS_ELSEWHERE: ClauseElement = (
    select(_columns.position).where(_has_id, _columns.tenant_id != bindparam("at_tenant", type_=Text)).limit(1)
)


@cache
def page(listing: Listing, one_conversation: bool) -> ClauseElement:
    """The rows of a listing after a position, in filing order."""
    statement = select(docket_entries).where(_in_tenant, *_LISTED[listing], _columns.position > _number("after"))
    if one_conversation:
        statement = statement.where(_in_conversation)
    return statement.order_by(_columns.position).limit(_number("at_most"))


@cache
def due(one_tenant: bool, one_conversation: bool) -> ClauseElement:
    """The due rows, oldest deadline first, locked where a database locks rows; SQLite's one lock is held already."""
    statement = select(docket_entries).where(is_pending, _is_due)
    if one_tenant:
        statement = statement.where(_in_tenant)
    if one_conversation:
        statement = statement.where(_in_conversation)
    ordered = statement.order_by(_columns.expires_at, _columns.position)
    return ordered.limit(_number("at_most")).with_for_update(skip_locked=True)


# --- writes --------------------------------------------------------------------------------------------------------

_INSERTS: Mapping[str, Any] = {"sqlite": sqlite.insert}


@cache
def filing(dialect_name: str) -> ClauseElement:
    """The insert that leaves a row alone that is already there (DK-1: the first write wins)."""
    insert = _INSERTS[dialect_name]
    names = [name for name in COLUMN_NAMES if name != "position"]
    statement: ClauseElement = (
        insert(docket_entries)
        .inline()
        .values(_new(names))
        .on_conflict_do_nothing(index_elements=["tenant_id", "entry_id"])
    )
    return statement


@cache
def transition(guard: TransitionGuard, columns: frozenset[str], counts_approvals: bool) -> ClauseElement:
    """The one way out of ``pending`` (DK-1)."""
    statement = update(docket_entries).where(_in_tenant, _has_id, *_GUARDS[guard]).values(_new(sorted(columns)))
    if counts_approvals:
        statement = statement.where(_columns.approvals_count == _number("at_approvals"))
    return statement


PRESERVE: ClauseElement = (
    update(docket_entries)
    .where(_in_tenant, _has_id, _reads_expired, _columns.preserved_amendments.is_(None))
    .values(_new(["preserved_amendments"]))
)
REPORT: ClauseElement = (
    update(docket_entries)
    .where(_in_tenant, _has_id, awaits_execution, _columns.attestation.is_not(None))
    .values(_new(["execution", "execution_detail"]))
)
SUPERSEDE: ClauseElement = (
    update(docket_entries)
    .where(_in_tenant, _has_id, _reads_expired, _columns.superseded_by.is_(None))
    .values(
        {
            **_new(["superseded_by"]),
            "status": ReviewStatus.EXPIRED.value,
            "decided_at": case((is_pending, _columns.expires_at), else_=_columns.decided_at),
        }
    )
)
EXPIRE: ClauseElement = (
    update(docket_entries)
    .where(_columns.position == _number("at_position"), is_pending)
    .values(status=ReviewStatus.EXPIRED.value, decided_at=_columns.expires_at)
)


# --- for a driver --------------------------------------------------------------------------------------------------


class Compiled:
    """A statement as one driver takes it: text, and parameters in the driver's own style.

    Statements are compiled once and then given to the driver as they are. SQLAlchemy's own execution costs several
    times what SQLite needs for the same statement, and every act on a row runs two of them.
    """

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        self.text: str = compiled.string
        self._order = compiled.positiontup
        self._constants: dict[str, Any] = {name: value for name, value in compiled.params.items() if value is not None}

    def arguments(self, parameters: Mapping[str, Any]) -> Any:
        """``parameters`` as the driver wants them. Raises ``KeyError`` when one that the statement needs is missing."""
        given = {**self._constants, **parameters}
        return given if self._order is None else [given[name] for name in self._order]
