"""Whether a proposal hides in what a tool returned: in a container, an attribute, an artifact (CV-2).

A result that is a proposal goes to the gate. A result that merely holds one goes nowhere: a framework would write it
out as text, values and all.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from affiant_core.affidavit import Affidavit
from affiant_core.envelope import ToolEnvelope, WriteProposal, recognise

log: logging.Logger = logging.getLogger(__name__)

_PLAIN = (int, float, complex, range, type(None))
_MOST_PARTS = 250_000
"""How many parts of one result are looked at. What is larger cannot be vouched for, and counts as hiding proposals."""


def count_proposals(result: object) -> int:
    """How many proposals, or sworn records outside one, a result holds anywhere; 2 stands for "two or more".

    A read's own envelope is what it is and is not searched: what stands in it is data. A result that cannot be looked
    through, since it is too large or a part of it raises, counts as 2: nobody can say what would be shown of it.
    """
    try:
        return _count(result)
    except Exception:  # the parts are the host's, and looking at one may raise anything
        log.exception("A result cannot be looked through for proposals")
        return 2


def _count(result: object) -> int:
    found = 0
    seen: dict[int, object] = {}  # the parts too: a forgotten one could give its identity to another
    waiting: list[object] = [result]
    looked_at = 0
    while waiting and found < 2:
        looked_at += 1
        if looked_at > _MOST_PARTS:
            log.error("A result of more than %d parts cannot be looked through for proposals", _MOST_PARTS)
            return 2
        part = waiting.pop()
        if isinstance(part, _PLAIN) or id(part) in seen:
            continue
        seen[id(part)] = part
        if _is_proposal(part):
            found += 1
        elif not isinstance(part, ToolEnvelope | str | bytes | bytearray | type):
            waiting.extend(islice(_parts_of(part), _MOST_PARTS + 1))
    return found


def _is_proposal(part: object) -> bool:
    match part:
        case WriteProposal() | Affidavit():
            return True
        case str():
            return isinstance(recognise(str.__str__(part)), WriteProposal)
        case bytes() | bytearray():
            return isinstance(recognise(bytes(part).decode("utf-8", "replace")), WriteProposal)
        case {"kind": "write", "envelope": _}:
            return True
        case _:
            return False


def _parts_of(part: object) -> Iterable[object]:
    """What a part is made of: members, keys, attributes, and what it would say of itself."""
    if isinstance(part, Mapping):
        yield from part.keys()
        yield from part.values()
    elif isinstance(part, Collection):
        yield from part
    for name in ("__dict__", "__pydantic_extra__", "__pydantic_private__"):
        held = getattr(part, name, None)
        if isinstance(held, Mapping):
            yield from held.values()
    for kind in type(part).__mro__:
        slots = vars(kind).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if not slot.startswith("__"):
                yield getattr(part, slot, None)
    if isinstance(part, BaseException):
        yield from part.args
    if type(part).__str__ is not object.__str__ and not isinstance(part, Collection):
        try:
            yield str(part)
        except Exception:  # noqa: BLE001  # an object that cannot say what it is says nothing to a model either
            return
