"""Parts of every command: one-line errors with exit code 2, progress on a terminal, flags from dataclasses."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import os
import re
import signal
import sys
import typing
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from typing import Any, TypeVar

from rnnreranker.base.apart import check_apart
from rnnreranker.base.arguments import flag, in_command, of_command
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
from rnnreranker.base.process.quiet import quiet_others
from rnnreranker.base.request import NUMBERS, kinds_of
from rnnreranker.base.settings import READERS, Params, hints_of, member, typed_name, words_of

T = TypeVar("T")
P = TypeVar("P", bound=Params)
LOGGER = logging.getLogger("rnnreranker")  # whom messages go to where no command is at work
BAD_INPUT = 2  # exit code; 0 is good, 1 is "a comparison failed"
UNAVAILABLE = 75  # in place of BAD_INPUT where something cannot be had here, for whom the command is a step of another:
# a plan tells what is lacking from a mistake
INTERRUPTED = "interrupted: nothing half-written; run the same command again to go on"
STEP = "RNNRERANKER_STEP"  # set in the environment: the command is a step of another one, which prints that line itself
TRACEBACK = "RNNRERANKER_TRACEBACK"  # set: errors that nobody foresaw show where they were raised


def run(main: Callable[[Sequence[str]], int]) -> int:
    """Call a command's `main` with the process's arguments; an error is one line and an exit code.

    Ctrl-C and SIGTERM raise KeyboardInterrupt; the exit code is 130 or 143. With RNNRERANKER_TRACEBACK in the
    environment, an unforeseen error shows its traceback.
    """
    quiet_others()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    try:
        return _run(main)
    except KeyboardInterrupt as error:
        phases.clear()
        if STEP not in os.environ:
            print(INTERRUPTED, file=sys.stderr)
        return 128 + (error.args[0] if error.args else signal.SIGINT)


def _terminate(number: int, frame: object) -> None:
    raise KeyboardInterrupt(number)


def _interruption(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interruption that a library turned into an error, as an import does."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _run(main: Callable[[Sequence[str]], int]) -> int:
    try:
        phases.start()
        with phases.phase(phases.STARTING), of_command():
            code = main(sys.argv[1:])
        sys.stdout.flush()  # a reader that has gone is noticed here, not at the end of the process
        return code
    except BrokenPipeError:  # the reader of our pipe has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if interruption := _interruption(error):
            raise interruption from None
        if os.environ.get(TRACEBACK) and not isinstance(error, RnnrerankerError):
            raise
        phases.clear()
        print(f"error: {shown(' '.join(said_of(error).split()))}", file=sys.stderr)
        lacking = isinstance(error, UnavailableError | MissingDependencyError)
        return UNAVAILABLE if lacking and os.environ.get(STEP) else BAD_INPUT


@dataclasses.dataclass
class _Done:
    what: str
    unit: str
    total: int | None
    count: int = 0

    def __str__(self) -> str:
        what = f"{self.what}: " if self.what else ""
        return f"{what}{self.count:,} {'' if self.total is None else f'of {self.total:,} '}{self.unit}"


def progress(iterable: Iterable[T], *, unit: str, total: int | None = None, what: str = "") -> Iterator[T]:
    """The iterable; in a command the phase shows `what` and the number of finished items."""
    if not in_command():
        yield from iterable
        return
    done = _Done(what, unit, len(iterable) if total is None and isinstance(iterable, Sized) else total)
    phases.tell(done)
    for item in iterable:
        yield item
        done.count += 1


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def say(message: str) -> None:
    """Print one line on stderr in a command; in Python, log it."""
    if not in_command():
        LOGGER.info(shown(message))
        return
    phases.clear()
    print(shown(message), file=sys.stderr)


def notice(message: str) -> None:
    """Report data that look wrong: a command prints `warning: MESSAGE` on stderr, Python calls raise `DataWarning`."""
    if in_command():
        say(f"warning: {message}")
    else:
        warnings.warn(shown(message), DataWarning, stacklevel=2)


def put(result: object) -> None:
    phases.clear()
    print(shown(str(result)))


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


class _Parser(argparse.ArgumentParser):
    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's; refuses an output that is an input."""
        parsed, unknown = self.parse_known_args(args, namespace)
        known = flags_of_parser(self)
        if unknown:
            from rnnreranker.base.method import setting_of

            flags = [one.partition("=")[0] for one in unknown if one.startswith("--")]
            if said := [now for one in flags if (now := setting_of(one, known))]:
                self.error("; ".join(said))
            hints = (nearest(one, known) for one in flags)
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


def main(function: Callable[[Sequence[str]], int]) -> Callable[[Sequence[str]], int]:
    """Decorates a command's `main`: messages name flags and are shown."""
    return of_command()(function)


def request(args: argparse.Namespace, kind: type[T], **given: Any) -> T:
    """The request of a command: fields from the flags of the same names, and `given` ones."""
    named = {field.name for field in dataclasses.fields(kind)} - set(given)  # type: ignore[arg-type]
    with naming_flags(named):
        return kind(**{name: value for name, value in vars(args).items() if name in named}, **given)


def add_request_flags(group: Any, kind: type, *names: str, **metavars: str) -> None:
    """Add the flags of fields of a request. A field with the default True has the flag `--no-NAME`.

    Args:
        names: of the fields, in the order of the help.
        metavars: name → value in the help, for fields without one; "" hides the flag.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in names:
        field, declared, about = fields[name], str(fields[name].type), fields[name].metadata
        kinds, required = kinds_of(declared), field.default is dataclasses.MISSING
        options: dict[str, Any] = {"dest": name, "default": None if required else field.default}
        shown_value = " ".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
        usual = "" if isinstance(options["default"], bool | None) or shown_value == "" else f" (default: {shown_value})"
        text = about["help"] + (f": {', '.join(words)}" if (words := words_of(field, str)) else "")
        if method := about.get("method"):
            text = f"{', '.join(known_methods(method))}{text}"
        shown = flag(typed_name(field))
        if "bool" in kinds:
            options["action"] = "store_false" if field.default else "store_true"
            shown = flag(f"no_{name}") if field.default else shown
        else:
            number = next((NUMBERS[one] for one in kinds if one in NUMBERS), float if "[float]" in declared else str)
            metavar = metavars.get(name) or about.get("metavar")
            options |= {"type": READERS.get(number, str), "choices": words or None, "required": required}
            options["metavar"] = metavar or ("N" if number is int else typed_name(field).upper())
            if about.get("many"):
                options |= {"action": "append", "default": [] if field.default == () else None}
            elif kinds[0] == "Sequence":
                options["nargs"] = "+"
        hidden = metavars.get(name) == ""
        group.add_argument(shown, help=argparse.SUPPRESS if hidden else (text + usual).replace("%", "%%"), **options)


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
        formatter_class=_Help,
    )


def first_word(argv: Sequence[str], known: Sequence[str]) -> str:
    """The first word of a command if it is one of `known`, "" for a flag; InputError: another word."""
    word = next(iter(argv), "-")
    if word.startswith("-"):
        return ""
    if word not in known:
        raise InputError(f"{word}: expected a flag, or {' or '.join(known)} first; {nearest(word, known)}")
    return word


def add_dataclass_flags(
    group: Any,
    settings: type[Params],
    skip: Collection[str] = (),
    base: Params | None = None,
    shown: Collection[str] | None = None,
) -> None:
    """Add a flag for each field of a settings class, with the default None; `given` returns the typed ones.

    Args:
        skip: fields without a flag; shown: fields in the help, None = all.
        base: the defaults in the help; None = those of the class.
    """
    for field in dataclasses.fields(settings):
        if field.name not in skip:
            usual = field.default if base is None else getattr(base, field.name)
            hidden = shown is not None and field.name not in shown
            add_flag(group, field, hints_of(settings)[field.name], f"default: {shown_default(usual)}", hidden)


def shown_default(default: Any) -> str:
    return "none" if default is None else ("no", "yes")[default] if isinstance(default, bool) else str(default)


def add_flag(
    group: Any, field: dataclasses.Field[Any], hint: Any, about: str, hidden: bool = False, before: str = ""
) -> None:
    """Add the flag of a setting; about, before: text behind and before the help of the setting."""
    text = f"{before}{field.metadata.get('help', '')} ({about})".strip().replace("%", "%%")
    options: dict[str, Any] = {"default": None, "dest": typed_name(field)}
    options["help"] = argparse.SUPPRESS if hidden else text
    if member(hint) is bool:
        options["action"] = argparse.BooleanOptionalAction
    elif words := words_of(field, hint):
        options["choices"] = [*words, "none"] if type(None) in typing.get_args(hint) else words
    else:
        options |= {"type": _reader(hint), "metavar": typed_name(field).upper()}
    group.add_argument(flag(typed_name(field)), **options)


def given(args: argparse.Namespace, settings: type) -> dict[str, Any]:
    """The fields of `settings` that were typed; 'none' is None if the field allows it."""
    hints = hints_of(settings)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(args, typed_name(field), None)
        if value is not None:
            optional = type(None) in typing.get_args(hints[field.name])
            values[field.name] = None if optional and value == "none" else value
    return values


def chosen(args: argparse.Namespace, settings: type[P], preset: str | None = None, base: P | None = None) -> P:
    """The settings of a command: typed values, then a preset, then `base` (None = the defaults).

    Raises:
        InputError: no such preset or file, values out of range, by their flags.
    """
    base = settings.named(preset, base) if preset else base or settings()
    typed = given(args, settings)
    with naming_flags(typed):
        return dataclasses.replace(base, **typed)


@contextlib.contextmanager
def naming_flags(typed: Collection[str]) -> Iterator[None]:
    """A block whose errors name flags in place of the settings fields in `typed`.

    >>> with naming_flags(["k_exp"]):
    ...     raise InputError("k_exp=0: expected an integer >= 1")
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: --k-exp 0: expected an integer >= 1
    """

    def named(match: re.Match[str]) -> str:
        value = "" if match[2] == "True" else f" {match[2]}"
        return f"{flag(match[1])}{value}: expected" if match[1] in typed else match[0]

    try:
        yield
    except InputError as error:
        raise InputError(re.sub(r"\b(\w+)=(\S+): expected", named, str(error))) from None


def _reader(hint: Any) -> Any:
    members = [member for member in typing.get_args(hint) if member is not type(None)]
    if not members:
        return READERS.get(hint, hint)
    read_one = READERS.get(members[0], members[0])

    def read(text: str) -> Any:
        return text if text == "none" else read_one(text)

    read.__name__ = f"{members[0].__name__} or none"  # argparse names it in its message
    return read
