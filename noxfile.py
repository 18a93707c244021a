"""The project's sessions: ``python3 -m pip install nox && python3 -m nox -l`` lists them."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "imports", "tests"]

ROOT = Path(__file__).resolve().parent
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
PACKAGES = ("./packages/core", "./packages/langchain_bridge")
PINS = ("-c", "constraints.txt")
OLDEST_PINS = ("-c", "constraints-oldest.txt")
PROVIDERS = {"OPENAI_API_KEY": "langchain-openai", "ANTHROPIC_API_KEY": "langchain-anthropic"}
PROTOCOL_VARIABLE = "AFFIANT_PROTOCOL_DIR"


def _install_group(session: nox.Session, *groups: str, pins: tuple[str, str] = PINS) -> None:
    """Install dependency groups of the root pyproject.toml."""
    session.install(*pins, *nox.project.dependency_groups(PYPROJECT, *groups))


def _install_packages(session: nox.Session, *groups: str, pins: tuple[str, str] = PINS, editable: bool = True) -> None:
    """Install the packages from the checkout, and dependency groups.

    The build backend comes from a group too, so that it is pinned and no package needs a build environment of its own.
    """
    _install_group(session, "build", *groups, pins=pins)
    packages = [word for package in PACKAGES for word in ("-e", package)] if editable else PACKAGES
    session.install(*pins, "--no-build-isolation", *packages)


def _protocol_folder(session: nox.Session) -> Path | None:
    """Where the protocol's public documents are: the variable, else a folder beside the checkout, else nowhere."""
    named = os.environ.get(PROTOCOL_VARIABLE)
    folder = Path(named).resolve() if named else ROOT.parent / "shared" / "protocol"
    if named and not folder.is_dir():
        session.error(f"{PROTOCOL_VARIABLE} names {named}, which is no folder")
    return folder if folder.is_dir() else None


def _pytest(session: nox.Session, *arguments: str) -> None:
    """Run pytest with the protocol's documents, if there are any, and with the session's own arguments last."""
    # LangChain would send what the tests do to LangSmith for whoever has that switched on.
    env = {"LANGSMITH_TRACING_V2": "false"}
    if folder := _protocol_folder(session):
        env[PROTOCOL_VARIABLE] = str(folder)
    session.run("pytest", *arguments, *session.posargs, env=env)


def _empty_environment(session: nox.Session, folder: Path) -> str:
    """Make a virtual environment with nothing in it and return its interpreter."""
    session.run("python", "-m", "venv", str(folder), silent=True)
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: the rules of pyproject.toml, and the formatting."""
    _install_group(session, "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy strict over packages, typing tests and examples; pyright over the packages and their public surface."""
    # Not editable: pyright looks for py.typed where an installed package has it.
    _install_packages(session, "types", editable=False)
    session.run("mypy")
    # The wheel brings pyright and Node.js with it; the variable stops it from asking whether there is a newer one.
    env = {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    session.run("pyright", env=env)
    for module in ("affiant_core", "affiant_langchain_bridge"):
        # Every name that a user can reach has a type that every checker reads in the same way.
        session.run("pyright", "--verifytypes", module, "--ignoreexternal", env=env)


@nox.session
def imports(session: nox.Session) -> None:
    """Imports point down: import-linter's contracts, and the rules that they cannot express."""
    _install_group(session, "imports")
    # The contracts are checked on the source text, so nothing has to be installed.
    sources = os.pathsep.join(str(ROOT / package / "src") for package in PACKAGES)
    session.run("lint-imports", env={"PYTHONPATH": sources})
    session.run("python", "tools/check_imports.py")


@nox.session
def tests(session: nox.Session) -> None:
    """The whole test suite with coverage; arguments after -- go to pytest."""
    _install_packages(session, "test")
    _pytest(session, "--cov", "--cov-report=term")


@nox.session
def conformance(session: nox.Session) -> None:
    """The conformance kit, and the protocol's public fixtures, which must be at hand."""
    if _protocol_folder(session) is None:
        session.error(
            f"the protocol's documents are not at hand: set {PROTOCOL_VARIABLE} to the folder that holds their "
            "INDEX.json, fixtures, examples and schemas, or put that folder at ../shared/protocol"
        )
    _install_packages(session, "test")
    _pytest(session, "tests/conformance")


@nox.session
def compat(session: nox.Session) -> None:
    """The whole test suite with the oldest supported versions."""
    _install_packages(session, "test", pins=OLDEST_PINS)
    _pytest(session)


@nox.session
def install(session: nox.Session) -> None:
    """Build the wheels and use them as a stranger would: the core alone, then the core and a bridge."""
    example = ROOT / "examples" / "minimal.py"
    if not example.is_file():
        session.error("examples/minimal.py is missing; it shows that the wheels work together")

    # Built from nothing each time: what an earlier run left behind must not make this one pass.
    folder = Path(session.create_tmp())
    shutil.rmtree(folder)
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)

    _install_group(session, "build")
    session.run(
        "python",
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(wheels),
        *PACKAGES,
        silent=True,
    )
    core = next(wheels.glob("affiant_core-*.whl"))
    bridge = next(wheels.glob("affiant_langchain_bridge-*.whl"))
    for wheel in (core, bridge):
        names = zipfile.ZipFile(wheel).namelist()
        for wanted in ("/py.typed", "/licenses/LICENSE"):
            if not any(name.endswith(wanted) for name in names):
                session.error(f"{wheel.name} has no {wanted[1:]}")

    # -I: neither the checkout nor a variable may lend a module that the wheels lack.
    python = _empty_environment(session, folder / "core-alone")
    session.run(python, "-m", "pip", "install", "--quiet", *PINS, str(core), external=True, silent=True)
    session.run(python, "-I", "tools/check_core_alone.py", external=True)

    python = _empty_environment(session, folder / "core-and-bridge")
    session.run(python, "-m", "pip", "install", "--quiet", *PINS, str(core), str(bridge), external=True, silent=True)
    session.run(python, "-I", str(example), external=True)


@nox.session
def demo(session: nox.Session) -> None:
    """The leave desk: an agent proposes, a person decides; arguments after -- go to the program."""
    _install_packages(session, "langchain")
    for key, package in PROVIDERS.items():
        if os.environ.get(key):
            session.install(package)  # a real model plays instead of the scripted one
    session.run("python", "examples/leave_desk/__main__.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks, as ratios of things measured side by side; arguments after -- go to the program."""
    # As a user has it, not editable: an editable install would slow the imports that are measured here.
    _install_packages(session, "langchain", editable=False)
    session.run("python", "benchmarks/run.py", *session.posargs)
