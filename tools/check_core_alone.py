"""Check an environment that holds affiant-core and nothing else of ours. Run by ``nox -s install``.

The core must be usable without any agent framework, and importing it must not pay for the durable docket.
"""

from __future__ import annotations

import sys
from importlib.metadata import distributions

FRAMEWORKS = ("langchain", "langgraph", "openai-agents", "semantic-kernel")
NEVER_AT_IMPORT = frozenset({"agents", "langchain", "langchain_core", "langgraph", "semantic_kernel", "sqlalchemy"})


def main() -> int:
    """Print every fault; the exit status says whether there was one."""
    installed = sorted({distribution.name.lower() for distribution in distributions()})
    faults = [
        f"{name} is installed, but affiant-core needs no framework" for name in installed if name.startswith(FRAMEWORKS)
    ]

    import affiant_core

    loaded = {module.partition(".")[0] for module in sys.modules}
    faults += [f"'import affiant_core' imports {name}" for name in sorted(NEVER_AT_IMPORT & loaded)]
    faults += [
        f"affiant_core.__all__ names {name}, which is missing"
        for name in affiant_core.__all__
        if not hasattr(affiant_core, name)
    ]
    print(*faults, f"check_core_alone: {len(installed)} distributions, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
