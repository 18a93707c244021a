"""The project's sessions: ``python3 -m pip install nox && python3 -m nox -l`` lists them."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
# uv, where it is installed, makes the environments in seconds; pip does the same in minutes.
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "imports", "tests"]

ROOT = Path(__file__).resolve().parent
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
CORE = "./packages/core"
BRIDGES = {
    "agents": "./packages/agents_bridge",
    "langchain": "./packages/langchain_bridge",
    "sk": "./packages/sk_bridge",
}
MODULES = {name: f"affiant_{name}_bridge" for name in BRIDGES}
PACKAGES = (CORE, *BRIDGES.values())
PINS = ("-c", "constraints.txt")
LATEST_PINS = ("-c", "constraints-latest.txt")
OLDEST_PINS = ("-c", "constraints-oldest.txt")
FOLDERS = {"agents": "openai_agents", "langchain": "langchain", "sk": "semantic_kernel"}
# Which pins are the oldest and the latest of each framework. For openai-agents one release is in the supported range,
# so the two sets differ in what it stands on; of semantic-kernel there is one release and one set.
FRAMEWORK_PINS = {
    ("agents", "oldest"): PINS,
    ("agents", "latest"): LATEST_PINS,
    ("langchain", "oldest"): OLDEST_PINS,
    ("langchain", "latest"): LATEST_PINS,
    ("sk", "oldest"): PINS,
    ("sk", "latest"): PINS,
}
PROVIDERS = {"OPENAI_API_KEY": "langchain-openai", "ANTHROPIC_API_KEY": "langchain-anthropic"}
PROTOCOL_VARIABLE = "AFFIANT_PROTOCOL_DIR"


def _install_group(session: nox.Session, *groups: str, pins: tuple[str, str] = PINS) -> None:
    """Install dependency groups of the root pyproject.toml."""
    session.install(*pins, *nox.project.dependency_groups(PYPROJECT, *groups))


def _install_packages(
    session: nox.Session,
    *groups: str,
    packages: tuple[str, ...] = PACKAGES,
    pins: tuple[str, str] = PINS,
    editable: bool = True,
) -> None:
    """Install packages from the checkout, all of them unless told otherwise, and dependency groups.

    The build backend comes from a group too, so that it is pinned and no package needs a build environment of its own.
    The frameworks come first: one of them stands on a package that has to be built, in an environment of its own.
    """
    frameworks = [name for name, package in BRIDGES.items() if package in packages]
    _install_group(session, "build", *frameworks, *groups, pins=pins)
    wanted = [word for package in packages for word in ("-e", package)] if editable else packages
    session.install(*pins, "--no-build-isolation", *wanted)


def _protocol_folder(session: nox.Session) -> Path | None:
    """Where the protocol's public documents are: the variable, else a folder beside the checkout, else nowhere."""
    named = os.environ.get(PROTOCOL_VARIABLE)
    folder = Path(named).resolve() if named else ROOT.parent / "shared" / "protocol"
    if named and not folder.is_dir():
        session.error(f"{PROTOCOL_VARIABLE} names {named}, which is no folder")
    return folder if folder.is_dir() else None


def _pytest(session: nox.Session, *arguments: str, command: tuple[str, ...] = ("pytest",)) -> None:
    """Run pytest with the protocol's documents, if there are any, and with the session's own arguments last."""
    # Two frameworks would send what the tests do to a service of theirs, for whoever has that switched on or has a key.
    env = {"LANGSMITH_TRACING_V2": "false", "OPENAI_API_KEY": None}
    if folder := _protocol_folder(session):
        env[PROTOCOL_VARIABLE] = str(folder)
    session.run(*command, *arguments, *session.posargs, env=env)


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
    for module in ("affiant_core", *MODULES.values()):
        # Every name that a user can reach has a type that every checker reads in the same way.
        session.run("pyright", "--verifytypes", module, "--ignoreexternal", env=env)


@nox.session
def imports(session: nox.Session) -> None:
    """Imports point down: import-linter's contracts, the rules that they cannot express, and the size of bridges."""
    _install_group(session, "imports")
    # The contracts are checked on the source text, so nothing has to be installed.
    sources = os.pathsep.join(str(ROOT / package / "src") for package in PACKAGES)
    session.run("lint-imports", env={"PYTHONPATH": sources})
    session.run("python", "tools/check_imports.py")
    session.run("python", "tools/check_size.py")


@nox.session
def tests(session: nox.Session) -> None:
    """The whole test suite with coverage, in as many processes as there are cores; arguments after -- go to pytest."""
    _install_packages(session, "test", "mcp")
    session.run("coverage", "erase")
    # Not by a plugin of pytest: the kit is one too, and what it imports must be counted.
    _pytest(session, "-n", "auto", command=("coverage", "run", "-m", "pytest"))
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session
def suite(session: nox.Session) -> None:
    """The whole test suite without coverage, for a quick run and for other Pythons; arguments after -- go to pytest."""
    _install_packages(session, "test", "mcp")
    _pytest(session, "-n", "auto")


@nox.session
@nox.parametrize(
    ("bridge", "versions"),
    [("core", "latest"), *FRAMEWORK_PINS],
    ids=["core", *(f"{bridge}-{versions}" for bridge, versions in FRAMEWORK_PINS)],
)
def conformance(session: nox.Session, bridge: str, versions: str) -> None:
    """The conformance kit: on each bridge with the oldest and the latest of its framework, and on the core's own parts.

    The core's own parts are the stores, the protocol's public documents, which must be at hand, and the bridges beside
    each other.
    """
    if bridge != "core":
        pins = FRAMEWORK_PINS[bridge, versions]
        if versions == "oldest" and pins == FRAMEWORK_PINS[bridge, "latest"]:
            session.skip(f"one release is supported so far: it is tested as {bridge}-latest")
        _install_packages(session, "kit", packages=(CORE, BRIDGES[bridge]), pins=pins)
        _pytest(
            session, "-n", "auto", "--pyargs", "affiant_core.testing.test_bridge", "--affiant-bridge", MODULES[bridge]
        )
        return
    if _protocol_folder(session) is None:
        session.error(
            f"the protocol's documents are not at hand: set {PROTOCOL_VARIABLE} to the folder that holds their "
            "INDEX.json, fixtures, examples and schemas, or put that folder at ../shared/protocol"
        )
    _install_packages(session, "test")
    _pytest(session, "-n", "auto", "tests/conformance")


@nox.session
@nox.parametrize("versions", ["oldest", "latest"], ids=["oldest", "latest"])
def compat(session: nox.Session, versions: str) -> None:
    """The whole test suite with the oldest supported versions, and with the latest that go without semantic-kernel."""
    bridges = {"oldest": ["langchain"], "latest": ["agents", "langchain"]}[versions]
    pins = OLDEST_PINS if versions == "oldest" else LATEST_PINS
    groups = ["test", *(["mcp"] if versions == "latest" else [])]
    _install_packages(session, *groups, packages=(CORE, *(BRIDGES[name] for name in bridges)), pins=pins)
    left_out = [f"--ignore=tests/bridges/{FOLDERS[name]}" for name in BRIDGES if name not in bridges]
    _pytest(session, "-n", "auto", *left_out)


@nox.session(venv_backend="virtualenv")
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
    built = {wheel.name.partition("-")[0]: wheel for wheel in wheels.glob("*.whl")}
    core, bridge = built["affiant_core"], built["affiant_langchain_bridge"]
    for wheel in built.values():
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
    """The leave desk: an agent proposes, a person decides. ``-- sk`` or ``-- agents`` plays it on another framework.

    Other arguments after -- go to the program.
    """
    framework, arguments = "langchain", list(session.posargs)
    if arguments and arguments[0] in BRIDGES:
        framework = arguments.pop(0)
    _install_packages(session, packages=(CORE, BRIDGES[framework]))
    for key, package in PROVIDERS.items():
        if framework == "langchain" and os.environ.get(key):
            session.install(package)  # a real model plays instead of the scripted one
    session.run("python", "examples/leave_desk/__main__.py", "--framework", framework, *arguments)


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks, as ratios of things measured side by side; arguments after -- go to the program."""
    # As a user has it, not editable: an editable install would slow the imports that are measured here.
    _install_packages(session, editable=False)
    session.run("python", "benchmarks/run.py", *session.posargs)
