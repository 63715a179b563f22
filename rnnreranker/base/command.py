"""Parts of every command: one-line errors with exit code 2, flags from dataclasses, phases, tables, and outputs that
are no inputs.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import io
import logging
import os
import re
import signal
import sys
import threading
import time
import typing
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, TypeVar

from rnnreranker.base.errors import (
    DataWarning,
    InputError,
    MissingDependencyError,
    RnnrerankerError,
    UnavailableError,
    argument,
    flag,
    in_command,
    nearest,
    of_command,
    said_of,
    shown,
)
from rnnreranker.base.method import KINDS
from rnnreranker.base.method import names as known_methods
from rnnreranker.base.private import flags_of_parser
from rnnreranker.base.settings import Params, as_number, hints_of

OFTEN = 0.2  # seconds between two lines on a terminal
LOGGED, LOGGED_AT_LEAST = 10.0, 600.0  # seconds between two lines in a log file: the first, which doubles, the longest
SLOW = 0.0005  # seconds that a phase takes at least to be named in a summary

spent: dict[str, float] = {}  # account to seconds, without those of phases inside, in the order in which they began
_phase = "starting"  # the innermost of the main thread
_next = 0.0  # when a line may be shown again
_begun = 0.0  # when the command began; 0 = no process of a command
_terminal: IO[str] | None = None  # a stream of this module's own: that of the process may be turned elsewhere


@contextlib.contextmanager
def phase(name: str, account: str = "") -> Iterator[None]:
    """The block, or the decorated function, is a phase; other threads than the main one report nothing.

    account: its name in the summary, if that differs.
    """
    global _phase
    if not _in_main_thread():
        yield
        return
    account, outer, _phase = account or name, _phase, name
    spent.setdefault(account, 0.0)
    _show(name)
    begun = time.perf_counter() - sum(spent.values())
    try:
        yield
    finally:
        spent[account] += time.perf_counter() - sum(spent.values()) - begun
        _phase = outer
        _show(outer)


def tell(detail: Callable[[], str]) -> None:
    """Show how far the phase is, if its last line is long enough ago."""
    global _next
    now = time.perf_counter()
    if not _begun or now < _next or not _in_main_thread():
        return
    said = f"{_phase}, {detail()}"
    if _terminal:
        _show(said)
    elif in_command():
        print(f"{said}: {now - _begun:.0f} s", file=sys.stderr, flush=True)
    _next = now + (OFTEN if _terminal else min(max(LOGGED, now - _begun), LOGGED_AT_LEAST))


def summary() -> str:
    """The seconds of all phases, and of the rest of the command."""
    rest = {"starting": time.perf_counter() - _begun - sum(spent.values())} if _begun else {}
    named = (rest | spent).items()
    return ", ".join(f"{account} {seconds:.2f} s" for account, seconds in named if seconds >= SLOW)


def start_phases() -> None:
    """Begin the phases of a command."""
    global _terminal, _begun, _next
    spent.clear()
    _begun = time.perf_counter()
    if sys.stderr.isatty():
        _terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    _next = _begun + (0 if _terminal else LOGGED)
    _show(_phase)


def is_command() -> bool:
    """Whether this process is a command of this package, so that no other code uses its libraries."""
    return _begun > 0


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _show(text: str) -> None:
    """Show a line on the terminal in place of the last one; "" = none."""
    if _terminal:
        _terminal.write("\r\x1b[K" + (f"{text} …" if text else ""))
        _terminal.flush()


# Arguments of commands and functions: those that are written, and those that may read a path, also within a written
# form. tests/test_overwriting.py fails where one is in neither.
_WRITTEN = """output json explain_output tsv listwise record storage work
    docs_folder"""
_READ = """index bm25_index from_index append documents topics test_topics validation_topics qrels test_qrels
    validation_qrels truth run runs test_run validation_run encoded_queries encoder preset pairs labels negatives
    neutrality term_scorer collections space read second files names retriever retrieve fuse prf
    expand rerank aggregate method model loss arms first_stages similarity beside filter parts scorer impact_encoder
    token_encoder systems"""
WRITTEN, READ = frozenset(_WRITTEN.split()), frozenset(_READ.split())


def check_apart(values: Mapping[str, Any], *, replaces: str | os.PathLike[str] | None = None) -> None:
    """Refuse outputs that would replace an input or another output, also through links.

    Args:
        values: arguments by name: paths, lists of paths, written forms; others are ignored.
        replaces: a folder that is written as a whole.

    Raises:
        InputError: an output that is an input or another output, is inside an input folder, or replaces an input.
    """
    inputs = [
        (f"{argument(name)} {path}", Path(os.path.realpath(path)))
        for name, value in values.items()
        if name in READ
        for one in (value if isinstance(value, list | tuple) else [value])
        for path in _paths_in(one)
    ]
    written: dict[Path, str] = {}
    for name, value in values.items():
        if name not in WRITTEN or not isinstance(value, str | Path) or os.fspath(value) in ("", "-"):
            continue
        output = Path(value).expanduser()
        real, said = Path(os.path.realpath(output)), f"{argument(name)} {output}"
        if real in written and (real.is_file() or not real.exists()):  # several may go to one folder or device
            raise InputError(f"{said}: {written[real]} writes this path too; give another name")
        written[real] = argument(name)
        for given, path in inputs:
            if path == real:
                raise InputError(f"{said}: the command reads it ({given}); give another name")
            if path in real.parents:
                raise InputError(f"{said}: is inside a folder that the command reads ({given}); give another")
    for given, path in inputs if replaces is not None else ():
        if Path(os.path.realpath(Path(replaces).expanduser())) in path.parents:  # type: ignore[arg-type]
            raise InputError(f"{replaces}: is written as a whole, but {given} is inside it; give another folder")


def _paths_in(value: Any) -> Iterator[Path]:
    """The existing files and folders in the text of an argument, whole or a setting in it."""
    text = str(value) if isinstance(value, os.PathLike) or hasattr(value, "params") else value
    if not isinstance(text, str):
        return
    within = map(str.strip, re.split(r'[=,+"|>]|:without:', text))
    pieces = [text, text.rpartition(":")[0], *within]  # FOLDER:SPLIT is a folder's split
    for path in [Path(piece).expanduser() for piece in dict.fromkeys(pieces) if piece]:
        if (os.path.isfile(path) or os.path.isdir(path)) and not _is_name(str(path)):
            yield path
            if path.suffix == ".npy" and (beside := path.with_suffix(".ids")).is_file():  # of a matrix of vectors
                yield beside


def _is_name(text: str) -> bool:
    """Whether a text is names of methods, or of the built-in collection, which take precedence over paths."""
    known = {"pydoc"}.union(*map(known_methods, KINDS))
    return known.issuperset(re.split("[+,]", text))


T = TypeVar("T")
LOGGER = logging.getLogger("rnnreranker")  # for messages of Python calls
BAD_INPUT = 2  # exit code; 0 is good, 1 is "a comparison failed"
UNAVAILABLE = 75  # in place of BAD_INPUT where something is missing here, for a command that runs this one as a step
INTERRUPTED = "interrupted: nothing half-written; run the same command again to go on"
STEP = "RNNRERANKER_STEP"  # in the environment: a file that gets the error of a step for the command that runs it
TRACEBACK = "RNNRERANKER_TRACEBACK"  # set: unforeseen errors show where they were raised


def run(main: Callable[[Sequence[str]], int]) -> int:
    """Call a command's `main` with the process's arguments; an error is one line and an exit code, Ctrl-C is 130.

    With RNNRERANKER_TRACEBACK in the environment, an unforeseen error shows its traceback.
    """
    _quiet_others()
    start_phases()
    try:
        with of_command():
            code = main(sys.argv[1:])
        _show("")
        sys.stdout.flush()  # a reader that has gone is noticed here, not at the end of the process
        return code
    except BrokenPipeError:  # the reader of our pipe has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        _show("")
        if STEP not in os.environ:
            print(INTERRUPTED, file=sys.stderr)
        return 128 + signal.SIGINT
    except Exception as error:
        if os.environ.get(TRACEBACK) and not isinstance(error, RnnrerankerError):
            raise
        _show("")
        said, step = shown(" ".join(said_of(error).split())), os.environ.get(STEP)
        print(f"error: {said}", file=sys.stderr)
        if step:
            Path(step).write_text(said, encoding="utf-8")
        lacking = isinstance(error, UnavailableError | MissingDependencyError)
        return UNAVAILABLE if lacking and step else BAD_INPUT


def _quiet_others() -> None:
    """Keep warnings, logs and progress bars of libraries out of a pipe or a log file.

    A character that the encoding of a stream lacks becomes an escape.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    level = logging.WARNING if sys.stderr.isatty() else logging.ERROR
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    LOGGER.setLevel(logging.WARNING)
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # also of processes that we start
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            os.environ.setdefault("PYTHONWARNINGS", "ignore")


def progress(iterable: Iterable[T], *, unit: str, total: int | None = None, what: str = "") -> Iterator[T]:
    """The iterable; in a command the phase shows `what` and the number of finished items."""
    total = len(iterable) if total is None and isinstance(iterable, Sized) else total
    of_all = "" if total is None else f"of {total:,} "
    for count, item in enumerate(iterable):
        tell(lambda done=count: f"{what}: {done:,} {of_all}{unit}".removeprefix(": "))  # type: ignore[misc]
        yield item


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def say(message: str) -> None:
    """Print one line on stderr in a command; in Python, log it."""
    if not in_command():
        LOGGER.info(shown(message))
        return
    _show("")
    sys.stderr.write(f"{shown(message)}\n")  # whole, beside lines of other threads


def notice(message: str) -> None:
    """Report data that look wrong: a command prints `warning: MESSAGE` on stderr, Python calls raise `DataWarning`."""
    if (kept := _noticed.get()) is not None:
        kept.append(shown(message))
    elif in_command() or is_command():
        with of_command():
            say(f"warning: {message}")
    else:
        warnings.warn(shown(message), DataWarning, stacklevel=2)


_noticed: ContextVar[list[str] | None] = ContextVar("noticed", default=None)


@contextlib.contextmanager
def notices() -> Iterator[list[str]]:
    """The list that gets the notices of the block, in place of a report."""
    kept: list[str] = []
    before = _noticed.set(kept)
    try:
        yield kept
    finally:
        _noticed.reset(before)


def put(result: object) -> None:
    _show("")
    print(shown(str(result)))


class _Parser(argparse.ArgumentParser):
    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's; refuses an output that is an input."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            known = flags_of_parser(self)
            hints = [nearest(one.partition("=")[0], known) for one in unknown if one.startswith("--")]
            hint = next((f"; {hint}" for hint in hints if hint.startswith("did you mean")), "")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        check_apart(vars(parsed))
        return parsed

    def error(self, message: str) -> typing.NoReturn:
        message = " ".join(message.removeprefix("argument ").split())
        self.exit(BAD_INPUT, f"error: {shown(message)}; {self.prog} --help lists the flags\n")


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "document"), counted(2, "document"), counted(0, "query", "queries")
    ('1 document', '2 documents', '0 queries')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


main = of_command()  # decorates a command's `main`: messages name flags and are shown


def request(args: argparse.Namespace, kind: type[T], **fixed: Any) -> T:
    """The request of a command: fields from the flags of the same names, and `fixed` ones."""
    typed = given(args, kind)
    with naming_flags(typed.keys() - fixed.keys()):
        return kind(**{**typed, **fixed})


def add_flags(
    group: Any,
    kind: type,
    *names: str,
    skip: Collection[str] = (),
    shown: Collection[str] | None = None,
    base: Any = None,
    before: str = "",
) -> None:
    """Add the flags of fields: of a request, for `request`, or of settings, for `given`.

    A field of a request with the default True has the flag `--no-NAME`. The dataclass refuses what is no number.

    Args:
        names: of the fields, in the order of the help; none = all but those to skip.
        shown: fields in the help; None = all.
        base: settings whose values are the defaults in the help; None = those of the class.
        before: text before the help.
    """
    of_settings = issubclass(kind, Params)
    for name in names or [one for one in hints_of(kind) if one not in skip]:
        hint = hints_of(kind)[name]
        default, about, written = hint.field.default, hint.about, hint.flag
        usual = getattr(base, name, default)
        text = f"{before}{', '.join(known_methods(about['method'])) if about['method'] else ''}{about['help']}"
        options: dict[str, Any] = {"dest": written, "default": default, "required": default is dataclasses.MISSING}
        if of_settings or about["many"]:
            options["default"] = None
        if hint.number is not bool:
            text += f": {', '.join(hint.words)}" if hint.words else ""
            reader: Any = functools.partial(as_number, kind=hint.number) if hint.number else str
            options |= {
                "choices": [*hint.words, *hint.nones[1:]] if hint.words else None,
                "metavar": about["metavar"] or ("N" if hint.number is int else written.upper()),
                "type": float if float in hint.items else reader,
                "action": "append" if about["many"] else "store",
                "nargs": "+" if hint.types[0] is Sequence and not about["many"] else None,
            }
        elif of_settings:
            options["action"] = argparse.BooleanOptionalAction
        else:
            options |= {"action": "store_const", "const": not default}
            written = f"no_{written}" if default else written
        if of_settings or not (hint.number is bool or usual in (None, dataclasses.MISSING, (), "")):
            said = " ".join(map(str, usual)) if isinstance(usual, tuple) else str(usual)
            text += f" (default: { ({'None': 'none', 'True': 'yes', 'False': 'no'}.get(said, said)) })"
        hidden = shown is not None and name not in shown
        group.add_argument(flag(written), help=argparse.SUPPRESS if hidden else text.replace("%", "%%"), **options)


def add_words(parser: Any, name: str, metavar: str, about: str, least: int = 1) -> None:
    """Add words without a flag, such as files; least: 0 or 1 of them."""
    parser.add_argument(name, nargs="+" if least else "*", metavar=metavar, help=about)


def parser(prog: str, description: str, epilog: str = "", usage: str = "") -> argparse.ArgumentParser:
    """A parser of `python -m rnnreranker.<prog>`, without abbreviated flags."""
    return _Parser(
        prog=f"python -m rnnreranker.{prog}",
        usage=usage or None,
        description=description,
        epilog=epilog or None,
        allow_abbrev=False,
        formatter_class=functools.partial(argparse.RawDescriptionHelpFormatter, max_help_position=28),
    )


def given(args: argparse.Namespace, kind: type) -> dict[str, Any]:
    """The fields of settings that were typed, or those of a request that are not None."""
    values = {name: getattr(args, hint.flag, None) for name, hint in hints_of(kind).items()}
    return {name: value for name, value in values.items() if value is not None}


@contextlib.contextmanager
def naming_flags(typed: Collection[str]) -> Iterator[None]:
    """A block whose errors name flags in place of the fields in `typed`.

    >>> with naming_flags(["k_exp"]):
    ...     raise InputError("k_exp=0: expected an integer >= 1")
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: --k-exp 0: expected an integer >= 1
    """

    def named(match: re.Match[str]) -> str:
        return f"{argument(match[1], match[2].strip(chr(39)))}: expected" if match[1] in typed else match[0]

    with of_command():
        try:
            yield
        except InputError as error:
            raise InputError(re.sub(r"\b(\w+)=([^;]+?): expected", named, str(error))) from None


def print_table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    """Print a table: aligned on a terminal, else tab-separated."""
    cells = [[shown(" ".join(re.split(r"[\t\r\n]+", str(cell)))) for cell in row] for row in (header, *rows)]
    _show("")
    aligned = sys.stdout.isatty()
    widths = [max(map(len, column)) if aligned else 0 for column in zip(*cells, strict=True)]
    for row in cells:
        print(("  " if aligned else "\t").join(map(str.ljust, row, widths)).rstrip(" "))


def interval(middle: float, low: float, high: float) -> str:
    """A difference with its interval.

    >>> interval(0.01, -0.02, 0.04)
    '+0.0100 [-0.0200, +0.0400]'
    """
    return f"{middle:+.4f} [{low:+.4f}, {high:+.4f}]"
