"""Affiant on Semantic Kernel: ``install`` it on a kernel, ``check`` the kernel again, ``invoke`` a function by hand."""

from affiant_core.bridge import require_version
from affiant_core.bridge.wiring import FUNCTION_NOT_FOUND

require_version("semantic-kernel", at_least=(1, 45), below=(2,), bridge="affiant-sk-bridge")  # before it is imported

from affiant_sk_bridge.catalog import check, install, invoke  # noqa: E402
from affiant_sk_bridge.functions import TURN_ARGUMENT, TurnArgument  # noqa: E402

__all__ = ["FUNCTION_NOT_FOUND", "TURN_ARGUMENT", "TurnArgument", "check", "install", "invoke"]
