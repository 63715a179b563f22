"""What all tests share: the optional folder of reference material, and a cache folder of their own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import CHROMIUM, Browser
from places import ROOT

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import VectorSource

if "PYTEST_XDIST_WORKER" in os.environ:  # several workers: torch and BLAS of one must not take the cores of the others
    os.environ.setdefault("OMP_NUM_THREADS", "1")

OWN_GRAPHS = ("test_encode_graph", "test_graphs", "test_doctor")  # whose tests look at how graphs are made and kept


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with golden numbers and test collections: RNNRERANKER_SHARED, else ../shared; skips without it."""
    named = os.environ.get("RNNRERANKER_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    if not folder.is_dir():
        reason = f"{folder} is not a folder: set RNNRERANKER_SHARED to the reference material to run this test"
        if named:
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a BERT of two layers."""
    from tiny_encoder import make_encoder

    return make_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A tab of headless Chromium; skips without it."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: install it to test the pages")
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> VectorSource:
    """The vectors of the made-up world to train in."""
    from tiny_encoder import make_source

    return make_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def module_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `tmp_path`, one folder for all tests of a file."""
    return tmp_path_factory.mktemp("module")


@pytest.fixture(scope="session")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a late-interaction encoder."""
    from tiny_encoder import make_late

    return make_late(tmp_path_factory.mktemp("late") / "late")


@pytest.fixture(scope="session")
def cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cross-encoder."""
    from tiny_encoder import make_cross_encoder

    return make_cross_encoder(tmp_path_factory.mktemp("cross"))


@pytest.fixture(scope="session")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a masked-language model whose words have weights of different sizes."""
    from tiny_encoder import make_masked

    return make_masked(tmp_path_factory.mktemp("masked"), initializer_range=0.4)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with labels, topics and documents of the world of texts."""
    from tiny_encoder import write_text_world

    return write_text_world(tmp_path / "world")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for the reference folder, so that `-m shared` selects them."""
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.shared)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where RNNRERANKER_SHARED is set, a test of the reference folder that skips has failed."""
    report = yield
    if report.skipped and item.get_closest_marker("shared") and os.environ.get("RNNRERANKER_SHARED"):
        report.outcome = "failed"
        report.longrepr = f"skipped, though RNNRERANKER_SHARED is set: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def not_a_command() -> Iterator[None]:
    """The tests run many commands and are none: Java starts here with the logger that all of Anserini takes.

    A slow machine adds no line on a phase to what a command prints.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rnnreranker.base.command.LOGGED", 3600.0)
        patch.setattr("rnnreranker.base.command.is_command", lambda: False)
        yield


@pytest.fixture(scope="session")
def jvm(not_a_command: None) -> None:
    """Java runs; skips without it."""
    from rnnreranker.base.errors import MissingDependencyError, UnavailableError
    from rnnreranker.base.java import start_java

    try:
        start_java()
    except (UnavailableError, MissingDependencyError) as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def built_in_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dense index of the built-in collection: the one in the cache folder, else one made for the tests."""
    from rnnreranker.base.files import cache_home
    from rnnreranker.data import pydoc
    from rnnreranker.index.__main__ import main as make_index

    cached = cache_home() / "indexes" / f"pydoc-{pydoc.fingerprint()}"
    if (cached / "rnnreranker.json").is_file():
        return cached
    base = tmp_path_factory.getbasetemp()
    made = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "pydoc-index"  # of two builds one waits
    assert make_index(["--documents", "pydoc", "--output", str(made)]) == 0
    return made


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests' cache folders are, out of the folder that pytest looks through for every `tmp_path`."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def home(homes: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A cache folder of the test's own, and no hub; graphs of encoders, which take seconds, are made once for all."""
    folder = Path(tempfile.mkdtemp(dir=homes))
    if request.path.stem not in OWN_GRAPHS:
        (homes / "graphs").mkdir(exist_ok=True)
        (folder / "graphs").symlink_to(homes / "graphs")
    if request.path.stem != "test_contents":
        (homes / "digests").mkdir(exist_ok=True)
        (folder / "digests").symlink_to(homes / "digests")
    monkeypatch.setenv("RNNRERANKER_HOME", str(folder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


@pytest.fixture(scope="session")
def outside_methods(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that has the package of tests/outside installed beside this one."""
    folder = tmp_path_factory.mktemp("outside")
    source = shutil.copytree(ROOT / "tests" / "outside", folder / "source")  # setuptools builds beside what it reads
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(folder / "site")]
    subprocess.run([*install, *options, str(source)], check=True)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "site"), str(ROOT)])}


@pytest.fixture
def command(outside_methods: dict[str, str], home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `python -m rnnreranker.LINE` where the other package is installed; the process, ended with this code."""

    def run(line: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", *shlex.split(f"rnnreranker.{line}")]
        environment = {**outside_methods, "RNNRERANKER_HOME": str(home), "HF_HUB_OFFLINE": "1", **variables}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture
def as_command() -> Iterator[None]:
    """Messages are those of a command: on stderr, with the names of flags."""
    from rnnreranker.base.errors import of_command

    with of_command():
        yield
