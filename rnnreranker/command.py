"""What every command shares: one-line errors with exit code 2, progress on a terminal, flags from dataclasses."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import os
import re
import sys
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from rnnreranker.errors import InputError, RnnrerankerError

T = TypeVar("T")
BAD_INPUT = 2  # exit code; 0 is good, 1 is "a comparison failed"


def run(main: Callable[[Sequence[str]], int]) -> int:
    """Call a command's `main` with the process's arguments and turn its errors into one line and an exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()  # a reader that has gone is noticed here, not at the end of the process
        return code
    except RnnrerankerError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted: nothing half-written; run the same command again to go on", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our pipe has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def progress(iterable: Iterable[T], *, unit: str, total: int | None = None, what: str = "") -> Iterable[T]:
    """The iterable, with a progress bar on stderr when that is a terminal; silent in a pipe."""
    from tqdm import tqdm

    return tqdm(iterable, total=total, unit=f" {unit}", desc=what or None, disable=None, file=sys.stderr, leave=False)


def cores() -> int:
    """The number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def say(message: str) -> None:
    """One line for a person, on stderr: results alone go to stdout."""
    print(message, file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the flags in one line, as every other error of a command."""

    def error(self, message: str) -> typing.NoReturn:
        message = " ".join(message.removeprefix("argument ").split())
        self.exit(BAD_INPUT, f"error: {message}; {self.prog} --help lists the flags\n")


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "document"), counted(2, "document"), counted(0, "query", "queries")
    ('1 document', '2 documents', '0 queries')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def parser(prog: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """An argument parser for `python -m rnnreranker.<prog>` without abbreviated flags."""
    return _Parser(
        prog=f"python -m rnnreranker.{prog}",
        description=description,
        epilog=epilog or None,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def positive(text: str) -> int:
    """The value of a flag that takes a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected an integer >= 1")
    return int(text)


def add_encoder_flags(group: Any) -> None:
    """The flags that say how an encoder turns texts into vectors; what is not given is the model's own."""
    group.add_argument("--pooling", choices=("mean", "cls", "max", "lasttoken"), help="default: the model's own")
    group.add_argument(
        "--l2-norm",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="scale vectors to length 1 (default: the model's own)",
    )
    group.add_argument(
        "--max-length", type=positive, metavar="TOKENS", help="cut texts there (default: the model's own)"
    )
    group.add_argument("--query-prompt", metavar="TEXT", help='put before queries when searching, like "query: "')


def flag(name: str) -> str:
    """The flag of a settings field: `k_exp` is `--k-exp`."""
    return "--" + name.replace("_", "-")


def add_dataclass_flags(group: Any, settings: type, skip: Collection[str] = ()) -> None:
    """One flag per field of a settings dataclass, so that the dataclass stays the only home of names and defaults.

    Every flag defaults to None: `given(args, settings)` returns those that were typed. A field's help text is its
    `metadata["help"]`. Fields in `skip` get none.
    """
    hints = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):
        if field.name in skip:
            continue
        options: dict[str, Any] = {"default": None, "dest": field.name}
        default = "none" if field.default is None else field.default
        options["help"] = f"{field.metadata.get('help', '')} (default: {default})".strip().replace("%", "%%")
        choices = _choices(hints[field.name])
        if choices:
            options["choices"] = choices
        else:
            options["type"] = _reader(hints[field.name])
            options["metavar"] = field.name.upper()
        group.add_argument(flag(field.name), **options)


def given(args: argparse.Namespace, settings: type) -> dict[str, Any]:
    """The fields of `settings` that were typed on the command line; 'none' is None where the field allows it."""
    hints = typing.get_type_hints(settings)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(args, field.name, None)
        if value is not None:
            optional = type(None) in typing.get_args(hints[field.name])
            values[field.name] = None if optional and value == "none" else value
    return values


def replaced(base: T, args: argparse.Namespace) -> T:
    """The settings `base`, a dataclass, with what was typed on the command line in place of its own values.

    Raises:
        InputError: values out of range, by the flags that they were given with.
    """
    typed = given(args, type(base))
    with naming_flags(typed):
        return dataclasses.replace(base, **typed)  # type: ignore[type-var]


@contextlib.contextmanager
def naming_flags(typed: Collection[str]) -> Iterator[None]:
    """Errors inside the block name flags in place of the settings fields in `typed`.

    >>> with naming_flags(["k_exp"]):
    ...     raise InputError("k_exp=0: expected an integer >= 1; lam=2: expected a number in [0, 1]")
    Traceback (most recent call last):
    rnnreranker.errors.InputError: --k-exp 0: expected an integer >= 1; lam=2: expected a number in [0, 1]
    """

    def named(found: re.Match[str]) -> str:
        return f"{flag(found[1])} {found[2]}: expected" if found[1] in typed else found[0]

    try:
        yield
    except InputError as error:
        raise InputError(re.sub(r"\b(\w+)=(\S+): expected", named, str(error))) from None


def _reader(hint: Any) -> Any:
    """What turns a flag's text into a value of the type; an optional number also takes `none`."""
    members = [member for member in typing.get_args(hint) if member is not type(None)]
    if not members:
        return hint

    def read(text: str) -> Any:
        return text if text == "none" else members[0](text)

    read.__name__ = f"{members[0].__name__} or none"  # argparse names it in its message
    return read


def _choices(hint: Any) -> list[str]:
    """The words that a Literal, or an optional Literal, allows; empty for plain types."""
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    members = typing.get_args(hint)
    words = [word for member in members for word in _choices(member)]
    return [*words, "none"] if words and type(None) in members else words
