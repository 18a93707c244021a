"""The tables of a Docket in SQL, and the numbered steps that bring a database up to them.

A database records each step that was applied to it in ``affiant_schema``. A step that has been released is never
edited: a later change of a table is a step of its own, and step 1 then keeps a copy of the tables as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    and_,
    func,
    insert,
    inspect,
    literal_column,
    select,
)

from affiant_core.docket.rows import to_milliseconds
from affiant_core.errors import DocketCorrupt, DocketSchemaTooNew
from affiant_core.values import utc_now

metadata: MetaData = MetaData()
"""Every table that this package keeps in a database. Give it to tools that compare schemas."""

affiant_schema: Table = Table(
    "affiant_schema",
    metadata,
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("applied_at", BigInteger, nullable=False, comment="milliseconds since 1970-01-01 UTC"),
)

docket_entries: Table = Table(
    "docket_entries",
    metadata,
    # Filing order, and what a page cursor remembers. Never used twice, so that a cursor outlives a purge.
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    # What is looked up, guarded and listed. Instants are milliseconds since 1970-01-01 UTC.
    Column("tenant_id", Text, nullable=False),
    Column("entry_id", Text, nullable=False),
    Column("conversation_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("execution", Text),
    Column("filed_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("decided_at", BigInteger),
    Column("approvals_count", Integer, nullable=False),
    Column("supersedes", Text),
    Column("superseded_by", Text),
    Column("requested_by", Text),
    Column("channel", Text, nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("protocol_version", Text, nullable=False),
    # JSON text, as the wire spells it.
    Column("affidavit", Text, nullable=False),
    Column("amended_affidavit", Text),
    Column("requirement", Text, nullable=False),
    Column("blocked", Text),
    Column("approvals", Text),
    Column("attestation", Text),
    Column("amendments", Text),
    Column("preserved_amendments", Text),
    Column("decision", Text),
    Column("execution_detail", Text),
    Column("presentation", Text, nullable=False),
    UniqueConstraint("entry_id", "tenant_id", name="uq_docket_entries_entry_tenant"),
    sqlite_autoincrement=True,
)

_columns = docket_entries.c

# A partial index serves a statement only when the statement spells the condition out, so these two are literals and
# never parameters; the statements use the very same objects.
is_pending: ColumnElement[bool] = _columns.status == literal_column("'pending'")
awaits_execution: ColumnElement[bool] = and_(
    _columns.status == literal_column("'approved'"), _columns.execution == literal_column("'unexecuted'")
)


def _index(name: str, *columns: str, where: ColumnElement[bool] | None = None) -> None:
    Index(
        f"ix_docket_entries_{name}",
        *(_columns[column] for column in columns),
        sqlite_where=where,
        postgresql_where=where,
    )


_index("tenant", "tenant_id", "position")
_index("conversation", "tenant_id", "conversation_id", "position")
# The constant column makes a planner without statistics prefer these to the two above.
_index("pending_tenant", "tenant_id", "status", "position", "expires_at", where=is_pending)
_index("pending_conversation", "tenant_id", "conversation_id", "status", "position", "expires_at", where=is_pending)
_index("due", "expires_at", "position", where=is_pending)
_index("due_tenant", "tenant_id", "status", "expires_at", "position", "conversation_id", where=is_pending)
_index("unexecuted_tenant", "tenant_id", "execution", "position", where=awaits_execution)
_index("unexecuted_conversation", "tenant_id", "conversation_id", "execution", "position", where=awaits_execution)


def _first_tables(connection: Connection) -> None:
    metadata.create_all(connection, checkfirst=False)


STEPS: tuple[Callable[[Connection], None], ...] = (_first_tables,)
"""What each step does, in order; step 1 is the first."""


def bring_up_to_date(connection: Connection, begin_writing: Callable[[Any], None]) -> None:
    """Apply the steps that the database lacks, all in one transaction under its write lock.

    Several processes may do this at once: all but one find nothing left to do. A database that is up to date is only
    read. Raises ``DocketSchemaTooNew`` for a database of a newer version, and ``DocketCorrupt`` for one that holds
    other tables and no Docket; neither is changed.
    """
    missing = _applied(connection) < len(STEPS)
    connection.rollback()
    if not missing:
        return
    begin_writing(connection.connection.cursor())
    for number in range(_applied(connection) + 1, len(STEPS) + 1):
        STEPS[number - 1](connection)
        connection.execute(insert(affiant_schema), {"step": number, "applied_at": to_milliseconds(utc_now())})
    connection.commit()


def _applied(connection: Connection) -> int:
    """The last step that was applied to this database; 0 for an empty one."""
    inspector = inspect(connection)
    present = {*inspector.get_table_names(), *inspector.get_view_names()}
    if not present:
        return 0
    if affiant_schema.name not in present:
        raise DocketCorrupt("the database holds other tables and no Docket; give the Docket a database of its own.")
    step = connection.scalar(select(func.max(affiant_schema.c.step)))
    if not isinstance(step, int) or step < 1 or docket_entries.name not in present:
        raise DocketCorrupt("the database holds only part of a Docket's tables; restore a copy of it.")
    if step > len(STEPS):
        raise DocketSchemaTooNew(
            f"the Docket is at schema step {step} and this version of affiant-core knows steps up to {len(STEPS)}; "
            "use the newer version that wrote it."
        )
    return step
