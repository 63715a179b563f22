"""Parts of every command: one-line errors with exit code 2, progress on a terminal, flags from dataclasses."""

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
import typing
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from pathlib import Path
from typing import Any, TypeVar

from rnnreranker.base.apart import check_apart
from rnnreranker.base.arguments import argument, flag, in_command, of_command
from rnnreranker.base.errors import (
    DataWarning,
    InputError,
    MissingDependencyError,
    RnnrerankerError,
    UnavailableError,
    nearest,
    said_of,
    shown,
)
from rnnreranker.base.method import names as known_methods
from rnnreranker.base.private.python import flags_of_parser
from rnnreranker.base.process import phases
from rnnreranker.base.settings import Hint, Params, as_number, hints_of

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
    phases.start()
    try:
        with phases.phase("starting"), of_command():
            code = main(sys.argv[1:])
        sys.stdout.flush()  # a reader that has gone is noticed here, not at the end of the process
        return code
    except BrokenPipeError:  # the reader of our pipe has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        phases.clear()
        if STEP not in os.environ:
            print(INTERRUPTED, file=sys.stderr)
        return 128 + signal.SIGINT
    except Exception as error:
        if os.environ.get(TRACEBACK) and not isinstance(error, RnnrerankerError):
            raise
        phases.clear()
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
        phases.tell(lambda done=count: f"{what}: {done:,} {of_all}{unit}".removeprefix(": "))  # type: ignore[misc]
        yield item


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def say(message: str) -> None:
    """Print one line on stderr in a command; in Python, log it."""
    if not in_command():
        LOGGER.info(shown(message))
        return
    phases.clear()
    print(shown(message), file=sys.stderr)


def notice(message: str) -> None:
    """Report data that look wrong: a command prints `warning: MESSAGE` on stderr, Python calls raise `DataWarning`."""
    if in_command() or phases.is_command():
        with of_command():
            say(f"warning: {message}")
    else:
        warnings.warn(shown(message), DataWarning, stacklevel=2)


def put(result: object) -> None:
    phases.clear()
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


def request(args: argparse.Namespace, kind: type[T], **given: Any) -> T:
    """The request of a command: fields from the flags of the same names, and `given` ones."""
    names = hints_of(kind).keys() - given.keys()
    typed = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    with naming_flags(names):
        return kind(**typed, **given)


def add_request_flags(group: Any, kind: type, *names: str, **metavars: str) -> None:
    """Add the flags of fields of a request. A field with the default True has the flag `--no-NAME`.

    Args:
        names: of the fields, in the order of the help.
        metavars: name → value in the help, for fields without one; "" hides the flag.
    """
    for name in names:
        hint = hints_of(kind)[name]
        default, about = hint.field.default, hint.field.metadata
        text = f"{', '.join(known_methods(about['method'])) if about['method'] else ''}{about['help']}"
        text += f": {', '.join(hint.words)}" if hint.words else ""
        if hint.number is not bool and default not in (None, dataclasses.MISSING, (), ""):
            text += f" (default: {' '.join(map(str, default)) if isinstance(default, tuple) else default})"
        options: dict[str, Any] = {"default": default, "choices": hint.words or None}
        if default is dataclasses.MISSING:
            options |= {"default": None, "required": True}
        if hint.number is bool:
            options = {"default": default, "action": "store_const", "const": not default}
        elif about["many"]:
            options |= {"action": "append", "default": None}
        elif hint.types[0] is Sequence:
            options["nargs"] = "+"
        shown = f"no_{name}" if default is True else hint.flag
        _add_flag(group, hint, shown, text, metavars.get(name, about["metavar"] or None), dest=name, **options)


def add_dataclass_flags(
    group: Any,
    settings: type[Params],
    skip: Collection[str] = (),
    base: Params | None = None,
    shown: Collection[str] | None = None,
) -> None:
    """Add a flag for each field of a settings class; `given` returns the typed ones.

    Args:
        skip: fields without a flag; shown: fields in the help, None = all.
        base: the defaults in the help; None = those of the class.
    """
    for name in hints_of(settings):
        if name not in skip:
            add_setting_flag(group, settings, name, base=base, hidden=shown is not None and name not in shown)


def add_setting_flag(
    group: Any, settings: type[Params], name: str, before: str = "", base: Params | None = None, hidden: bool = False
) -> None:
    """Add the flag of a setting; before: text before its help; base, hidden: as in `add_dataclass_flags`."""
    hint = hints_of(settings)[name]
    usual = hint.field.default if base is None else getattr(base, name)
    usual = {"None": "none", "True": "yes", "False": "no"}.get(str(usual), usual)
    text = f"{before}{hint.field.metadata['help']} (default: {usual})"
    options: dict[str, Any] = {"metavar": hint.flag.upper()}
    if hint.number is bool:
        options = {"action": argparse.BooleanOptionalAction}
    elif hint.words:
        options = {"choices": [*hint.words, *hint.nones[1:]], "metavar": None}
    _add_flag(group, hint, hint.flag, text, "" if hidden else None, dest=hint.flag, **options)


def _add_flag(group: Any, hint: Hint, name: str, text: str, value: str | None, **options: Any) -> None:
    """Add a flag; its dataclass refuses what is no number; value: its name in the help, "" hides the flag."""
    if hint.number is not bool:
        usual = value or ("N" if hint.number is int else hint.flag.upper())
        reader: Any = functools.partial(as_number, kind=hint.number) if hint.number else str
        options = {"metavar": usual, "type": float if float in hint.items else reader} | options
    group.add_argument(flag(name), help=argparse.SUPPRESS if value == "" else text.replace("%", "%%"), **options)


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


def given(args: argparse.Namespace, settings: type) -> dict[str, Any]:
    """The fields of `settings` that were typed."""
    values = {name: getattr(args, hint.flag, None) for name, hint in hints_of(settings).items()}
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
