"""Which tests a suite of the kit has, and whether somebody's subclass still has them all."""

from __future__ import annotations

__all__ = ["missing_tests", "standard_tests"]


def standard_tests(suite: type) -> list[str]:
    """The names of a suite's tests."""
    return sorted(name for name in dir(suite) if name.startswith("test_"))


def missing_tests(kind: type, suite: type) -> list[str]:
    """The standard tests that ``kind`` has deleted, or replaced without an ``xfail`` that gives a reason."""
    return [name for name in standard_tests(suite) if not _stands(getattr(kind, name, None), getattr(suite, name))]


def _stands(own: object, standard: object) -> bool:
    if own is standard:
        return True
    marks = getattr(own, "pytestmark", [])
    return callable(own) and any(mark.name == "xfail" and mark.kwargs.get("reason") for mark in marks)
