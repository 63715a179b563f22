"""Settings: frozen dataclasses whose fields carry limits and help; flags, YAML and presets are views of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import numbers
import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from rnnreranker.base.arguments import flag
from rnnreranker.base.errors import InputError, brief, nearest


def setting(
    default: Any,
    meaning: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    one_of: Callable[[], list[str]] = list,
    tunable: bool = True,
    flag: str = "",
    metavar: str = "",
    method: str = "",
    many: bool = False,
) -> Any:
    """A field of `Params` or of a request.

    Args:
        default: its value, also in presets that leave it out.
        meaning: its help text, one line.
        at_least, at_most, above: limits of a number; floats are always finite.
        one_of: returns the words that a text may be.
        tunable: whether a search over parameters may vary it.
        flag: its name on the command line, if it differs.
        metavar: the value in the help; "" = the flag's name, N for an integer.
        method: a kind of method, whose names begin the help text.
        many: whether the flag may be repeated.
    """
    limits = {"at_least": at_least, "at_most": at_most, "above": above}
    metadata = {"help": meaning, "limits": limits, "one_of": one_of, "tunable": tunable, "flag": flag}
    metadata |= {"metavar": metavar, "method": method, "many": many}
    return dataclasses.field(default=default, metadata=metadata)


def context_setting(default: int = 60) -> Any:
    """The field `context`: the number N of candidates, with one default for all methods."""
    return setting(default, "N: candidates of a query that take part; others stay below", at_least=1)


@dataclasses.dataclass(frozen=True)
class Params:
    """Base of all settings: checks each field by its type and limits; numbers become plain Python numbers.

    Fields are int, float, bool, str, a Literal, or one of these or None. A plain value for an inherited field changes
    its default. Subclasses may set `presets` (named instances), `ours` (those that are not published) and `section`
    (the key in a preset file).

    Raises:
        InputError: all values out of range, in one message.
    """

    presets: ClassVar[Mapping[str, Any]] = {}
    ours: ClassVar[frozenset[str]] = frozenset()
    section: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for field in dataclasses.fields(cls):  # those that are inherited
            value = vars(cls).get(field.name, field)
            if not isinstance(value, dataclasses.Field):
                setattr(cls, field.name, dataclasses.field(default=value, metadata=field.metadata))

    def __post_init__(self) -> None:
        problems, hints = [], hints_of(type(self))
        for field in dataclasses.fields(self):
            value, problem = checked(field, hints[field.name], getattr(self, field.name))
            object.__setattr__(self, field.name, value)
            problems += [problem] if problem else []
        if problems:
            raise InputError("; ".join(problems))

    @classmethod
    def preset(cls, name: str) -> Self:
        """The settings of a preset; InputError: unknown (with the nearest names)."""
        if not cls.presets:
            raise InputError(f"preset {name}: there are no presets of {cls.__name__}; give a YAML file")
        if not isinstance(name, str) or name not in cls.presets:
            raise InputError(
                f"preset {str(name) if isinstance(name, str | Path) else brief(name)}: not known; "
                f"give a YAML file or a known one, {nearest(str(name), cls.presets)}"
            )
        params: Self = cls.presets[name]
        return params

    @classmethod
    def named(cls, text: str, base: Self | None = None) -> Self:
        """The settings of `--preset TEXT`: of a YAML file, over `base`, if TEXT is a path, else of a preset."""
        return cls.from_yaml(text, base) if isinstance(text, str) and is_file_name(text) else cls.preset(text)

    @classmethod
    def of(cls, values: Mapping[str, Any], shown: str = "", **fixed: Any) -> Self:
        """The settings of a written form, and `fixed` ones; shown: the argument, for messages.

        Raises:
            InputError: unknown settings, with the nearest names; values out of range.
        """
        if not isinstance(values, Mapping):
            raise InputError(f"{brief(values)}: expected a mapping of settings to values")
        hints = {name: hint for name, hint in hints_of(cls).items() if name not in fixed}
        with located(shown):
            return cls(**typed(values, hints), **fixed)

    @classmethod
    def from_yaml(cls, path: str | Path, base: Self | None = None) -> Self:
        """The settings of a YAML file, or of its section `cls.section`, over `base` or the defaults.

        Raises:
            InputError: no such file, not YAML, unknown settings (with the nearest names), values out of range.
        """
        content, where = read_section(path, cls.section)
        with located(where):
            return dataclasses.replace(base or cls(), **typed(cls.of_section(content), hints_of(cls)))

    @classmethod
    def of_section(cls, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """The part of a section of a preset file that belongs to these settings."""
        return content

    def to_dict(self) -> dict[str, Any]:
        """All fields by name: `type(params)(**params.to_dict()) == params`."""
        return dataclasses.asdict(self)


def hints_of(kind: Any) -> dict[str, Any]:
    """Name → type of each field of a settings class."""
    return _hints(kind)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def checked(field: dataclasses.Field[Any], hint: Any, value: Any) -> tuple[Any, str]:
    """A field's value as a plain one, and the problem, or ""; 2.0 counts as 2."""
    optional = type(None) in get_args(hint)
    if value is None and optional:
        return None, ""
    kind, limits = member(hint), field.metadata.get("limits", {})
    if words := words_of(field, hint):
        good = isinstance(value, str) and value in words
    elif kind is bool:
        good = isinstance(value, bool)
    elif kind in (int, float):
        exact = kind is int and isinstance(value, numbers.Real) and not isinstance(value, bool) and value % 1 == 0
        value = int(value) if exact else value
        good = isinstance(value, numbers.Integral if kind is int else numbers.Real) and not isinstance(value, bool)
        good = good and _fits(value) and _within(value, **limits)
        value = (operator.index(value) if kind is int else float(value)) if good else value
    else:
        good = isinstance(value, str)
    return value, "" if good else f"{field.name}={brief(value)}: expected {expected(field, hint)}"


def expected(field: dataclasses.Field[Any], hint: Any) -> str:
    """The values that a field takes, in words."""
    kind = member(hint)
    if words := words_of(field, hint):
        said = f"one of {', '.join(words)}"
    elif kind in (int, float):
        said = _range(kind, **field.metadata.get("limits", {}))
    else:
        said = "true or false" if kind is bool else "a text"
    return f"{said}{' or none' if type(None) in get_args(hint) else ''}"


def _fits(value: Any) -> bool:
    return -(2**63) <= int(value) < 2**63 if isinstance(value, numbers.Integral) else math.isfinite(value)


def _within(
    value: float, at_least: float | None = None, at_most: float | None = None, above: float | None = None
) -> bool:
    low = (at_least is None or value >= at_least) and (above is None or value > above)
    return low and (at_most is None or value <= at_most)


def _range(kind: type, at_least: float | None = None, at_most: float | None = None, above: float | None = None) -> str:
    whole = kind is int
    if at_most is not None:
        low = f"[{at_least:g}" if at_least is not None else f"({above:g}" if above is not None else "(-inf"
        return f"{'an integer' if whole else 'a number'} in {low}, {at_most:g}]"
    word = "an integer" if whole else "a finite number"
    if above is not None:
        return f"{word} > {above:g}"
    return word if at_least is None else f"{word} >= {at_least:g}"


@functools.cache
def member(hint: Any) -> Any:
    """The type behind an optional one: int of `int | None`."""
    return (
        next((part for part in get_args(hint) if part is not type(None)), hint)
        if type(None) in get_args(hint)
        else hint
    )


@functools.cache
def choices(hint: Any) -> list[str]:
    """The words of a Literal, perhaps optional; empty for other types."""
    hint = member(hint)
    return list(get_args(hint)) if get_origin(hint) is Literal else []


def words_of(field: dataclasses.Field[Any], hint: Any) -> list[str]:
    """The words that a field allows, by its type or `one_of`; empty for other fields."""
    words: list[str] = choices(hint) or field.metadata.get("one_of", list)()
    return words


class Typed(str):
    """A value as typed by the user, still to be read as the type of its setting."""


YES_OR_NO = {"true": True, "yes": True, "false": False, "no": False}


def plain(value: Any, hint: Any) -> Any:
    """A value of YAML or of a written form, converted to a field's type if possible.

    `none` is None; 1e-5, a text in YAML, is a number; other texts become numbers or booleans only if they are `Typed`.

    >>> plain(Typed("5"), int | None), plain("5", int | None), plain(Typed("no"), bool)
    (5, '5', False)
    """
    if not isinstance(value, str):
        return value
    kind = member(hint)
    if value == "none" and type(None) in get_args(hint):
        return None
    if kind is float or (kind is int and isinstance(value, Typed)):
        try:
            return READERS[kind](value)
        except ValueError:
            return str(value)
    if kind is bool and isinstance(value, Typed):
        return YES_OR_NO.get(value, str(value))
    return str(value)


def typed(values: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name, converted to their types; InputError: unknown names, with the nearest ones."""
    if unknown := [name for name in values if name not in hints]:
        raise InputError("; ".join(f"no setting {name}, {nearest(str(name), hints)}" for name in unknown))
    return {name: plain(value, hints[name]) for name, value in values.items()}


@contextlib.contextmanager
def located(where: str) -> Iterator[None]:
    """A block whose errors begin with their location; "" = unchanged."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from None


def typed_name(field: dataclasses.Field[Any]) -> str:
    """The name of a field on the command line, with _ for -."""
    return str(field.metadata.get("flag") or field.name).replace("-", "_")


def words(values: Mapping[str, Any]) -> list[str]:
    """Values by name as words of a command line.

    >>> words({"n_max": 4, "learn_temperature": False, "normalize": None})
    ['--n-max', '4', '--no-learn-temperature', '--normalize', 'none']
    """
    flags: list[str] = []
    for name, value in values.items():
        if isinstance(value, bool):
            flags.append(flag(name if value else f"no_{name}"))
        else:
            flags += [flag(name), "none" if value is None else str(value)]
    return flags


_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)


def whole(text: str) -> int:
    """The integer of a text; ValueError: another text, also `1_0` and digits of other scripts."""
    if not _WHOLE.fullmatch(text) or len(text) > 4000:
        raise ValueError(f"{text[:40]!r}: expected a whole number")
    return int(text)


def number(text: str) -> float:
    """The number of a text, perhaps infinite or NaN; ValueError: another text, as in `whole`."""
    if not _NUMBER.fullmatch(text) and not _WORDS.fullmatch(text):
        raise ValueError(f"{text[:40]!r}: expected a number")
    return float(text)


READERS = {int: whole, float: number}
whole.__name__, number.__name__ = "int", "float"  # messages on flags name them


SECTIONS = ("rnn", "labels", "train")  # keys of a preset file that holds settings of several kinds


def is_file_name(text: str) -> bool:
    """Whether a preset's text is a path: ends in .yaml or .yml, has a slash, or is a file."""
    return text.endswith((".yaml", ".yml")) or "/" in text or os.path.isfile(text)


def sections_of(path: str | Path) -> frozenset[str]:
    """The sections of a preset file; InputError: unreadable, no mapping."""
    return frozenset(_content(path)) & frozenset(SECTIONS)


def read_section(path: str | Path, section: str) -> tuple[dict[str, Any], str]:
    """The values of a section of a preset file, empty if missing, and their location for messages."""
    content = _content(path)
    if (schema := content.pop("schema", 1)) != 1:
        raise InputError(f"{path}: schema {schema!r} is not known; this version reads schema 1")
    if not set(content) & set(SECTIONS):
        return content, str(path)
    if strange := [str(key) for key in content if key not in SECTIONS]:
        raise InputError(f"{path}: {', '.join(strange)} beside sections; expected only {', '.join(SECTIONS)}")
    values = content.get(section) or {}
    if not isinstance(values, dict):
        raise InputError(f"{path}: {section}: expected a mapping of settings to values")
    return values, f"{path}: {section}"


def _content(path: str | Path) -> dict[str, Any]:
    from rnnreranker.base.strict import read_yaml

    content = read_yaml(path, "preset file")
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a mapping such as `k: 10`")
    return content
