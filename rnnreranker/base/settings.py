"""Settings: frozen dataclasses whose fields carry limits and help; flags, YAML, presets and checks derive from them."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
import operator
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

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
    before: str = "",
    metavar: str = "",
    method: str = "",
    many: bool = False,
) -> Any:
    """A field of `Params` or of a request: its default, the help text of its flag, and its limits.

    Args:
        default: also what a preset leaves out.
        meaning: one line; the flag's help shows it with the default.
        at_least, at_most, above: limits of a number; a number of type float is finite in any case.
        one_of: gives the words that a text may be, where they are found when the program runs, as names of methods are.
        tunable: whether a search over parameters may vary it.
        flag: its word on the command line, where that is not its name.
        before: the inherited setting that it is listed before, see `setting_order.in_order`.
        metavar: what the help shows for a value; "" = the flag's name in capitals, N of an integer.
        method: a kind of method; the help of the flag begins with their names.
        many: whether the flag may be given several times.
    """
    limits = {"at_least": at_least, "at_most": at_most, "above": above}
    metadata = {"help": meaning, "limits": limits, "one_of": one_of, "tunable": tunable, "flag": flag}
    metadata |= {"before": before, "metavar": metavar, "method": method, "many": many}
    return dataclasses.field(default=default, metadata=metadata)


def context_setting(default: int = 60) -> Any:
    """The field `context`: N, by default the same in all methods that are compared with rNN."""
    return setting(default, "N: candidates of a query that take part; others stay below", at_least=1)


@dataclasses.dataclass(frozen=True)
class Params:
    """Base of all settings: checks every field by its type and limits, and makes plain numbers of numbers.

    Fields are int, float, bool, str, a Literal of words, or one of these or None. A subclass may have `presets`, named
    instances of it, `ours`, those of them that are not published values, and `section`, the key that it stands under
    in a preset file. A plain value for an inherited field is another default of it; limits and help stay.

    Raises:
        InputError: everything out of range, in one message.
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
        """The published or project-given settings of a name.

        Raises:
            InputError: no such preset (with the nearest names), or settings without presets.
        """
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
        """The settings that `--preset TEXT` stands for: of a file where TEXT is a path, else of a preset of that name.

        base: what a file leaves out; None = the defaults.

        Raises:
            InputError: as `preset` and `from_yaml`.
        """
        return cls.from_yaml(text, base) if isinstance(text, str) and is_file_name(text) else cls.preset(text)

    @classmethod
    def of(cls, values: Mapping[str, Any], shown: str = "", **fixed: Any) -> Self:
        """The settings of a written form: `values` read as their types, beside `fixed` ones.

        shown: what they were given with, for messages.

        Raises:
            InputError: unknown settings, with the nearest names; values out of range.
        """
        if not isinstance(values, Mapping):
            raise InputError(f"{brief(values)}: expected a mapping of settings to values")
        hints = {name: hint for name, hint in hints_of(cls).items() if name not in fixed}
        before = f"{shown}: " if shown else ""
        if unknown := [name for name in values if name not in hints]:
            raise InputError(before + "; ".join(f"no setting {name}, {nearest(str(name), hints)}" for name in unknown))
        try:
            return cls(**{name: plain(value, hints[name]) for name, value in values.items()}, **fixed)
        except InputError as error:
            raise InputError(f"{before}{error}") from None

    @classmethod
    def from_yaml(cls, path: str | Path, base: Self | None = None) -> Self:
        """The settings of a YAML file, or of its section `cls.section`; the rest from `base`, or at their defaults.

        Raises:
            InputError: no such file, not YAML, unknown keys (with the nearest names), values out of range.
        """
        content, where = read_section(path, cls.section)
        hints = hints_of(cls)
        try:
            content = dict(cls.of_section(content))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if unknown := [key for key in content if key not in hints]:
            raise InputError(
                f"{where}: " + "; ".join(f"unknown key {key}, {nearest(str(key), hints)}" for key in unknown)
            )
        try:
            return dataclasses.replace(
                base or cls(), **{key: plain(value, hints[key]) for key, value in content.items()}
            )
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    @classmethod
    def of_section(cls, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """What its section of a preset file says of its fields, without what belongs to other settings."""
        return content

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, plain values: `type(params)(**params.to_dict()) == params`."""
        return dataclasses.asdict(self)


def hints_of(kind: Any) -> dict[str, Any]:
    """The type of every field of a settings class, in their order; worked out once."""
    return _hints(kind)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def checked(field: dataclasses.Field[Any], hint: Any, value: Any) -> tuple[Any, str]:
    """A field's value as a plain one, and what is wrong with it, or an empty text; 2.0 is the integer 2."""
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
    """What a field takes, in words."""
    kind = member(hint)
    if words := words_of(field, hint):
        said = f"one of {', '.join(words)}"
    elif kind in (int, float):
        said = _range(kind, **field.metadata.get("limits", {}))
    else:
        said = "true or false" if kind is bool else "a text"
    return f"{said}{' or none' if type(None) in get_args(hint) else ''}"


def _fits(value: Any) -> bool:
    """Whether a number is finite and, an integer, one of 64 bits."""
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
    """The words that a Literal, or an optional Literal, allows, not to be changed; empty for other types."""
    hint = member(hint)
    return list(get_args(hint)) if get_origin(hint) is Literal else []


def words_of(field: dataclasses.Field[Any], hint: Any) -> list[str]:
    """The words that a field allows, by its type or by its `one_of`; empty where it is no choice of words."""
    words: list[str] = choices(hint) or field.metadata.get("one_of", list)()
    return words


class Typed(str):
    """A value as somebody typed it, to be read as the type of the setting that it is for."""


YES_OR_NO = {"true": True, "yes": True, "false": False, "no": False}


def plain(value: Any, hint: Any) -> Any:
    """A value of YAML or of a written form as a field's type takes it; what cannot be read stays, and is refused.

    `none` is None; 1e-5, which YAML takes for a word, is a number; numbers, and yes and no, are read of `Typed` alone.

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


def typed_name(field: dataclasses.Field[Any]) -> str:
    """What a field is called on the command line, with _ for -: its name, unless its setting says otherwise."""
    return str(field.metadata.get("flag") or field.name).replace("-", "_")


def words(values: Mapping[str, Any], kind: type | None = None) -> list[str]:
    """Values of fields as words of a command line; `kind` is the class that has the fields.

    >>> words({"n_max": 4, "learn_temperature": False, "normalize": None})
    ['--n-max', '4', '--no-learn-temperature', '--normalize', 'none']
    """
    flags: list[str] = []
    names = {field.name: typed_name(field) for field in dataclasses.fields(kind)} if kind is not None else {}
    for name, value in values.items():
        word = flag(names.get(name, name))
        if isinstance(value, bool):
            flags.append(word if value else "--no-" + word.removeprefix("--"))
        else:
            flags += [word, "none" if value is None else str(value)]
    return flags


K = TypeVar("K", bound=type[Params])


def in_order(kind: K) -> K:
    """A dataclass with its own fields among those it inherits: where `before` says, each behind the one above it."""
    fields: dict[str, dataclasses.Field[Any]] = kind.__dataclass_fields__
    names = [field.name for field in dataclasses.fields(kind.__base__)]  # type: ignore[arg-type]
    position = len(names)
    for field in [field for field in dataclasses.fields(kind) if field.name not in names]:
        before = field.metadata.get("before")
        position = names.index(before) if before else position
        names.insert(position, field.name)
        position += 1
    kind.__dataclass_fields__ = {name: fields[name] for name in dict.fromkeys([*names, *fields])}
    return kind


_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)


def whole(text: str) -> int:
    """The whole number that a text is.

    Raises:
        ValueError: any other text, among them `1_0` and digits of other scripts, which `int` takes.

    >>> whole("-12")
    -12
    >>> whole("1_0")
    Traceback (most recent call last):
    ValueError: '1_0': expected a whole number
    """
    if not _WHOLE.fullmatch(text) or len(text) > 4000:
        raise ValueError(f"{text[:40]!r}: expected a whole number")
    return int(text)


def number(text: str) -> float:
    """The number that a text is; whether it may be infinite is for those who use it.

    Raises:
        ValueError: any other text, among them `1_0` and digits of other scripts, which `float` takes.

    >>> number("1e-3")
    0.001
    >>> number("1_0.5")
    Traceback (most recent call last):
    ValueError: '1_0.5': expected a number
    """
    if not _NUMBER.fullmatch(text) and not _WORDS.fullmatch(text):
        raise ValueError(f"{text[:40]!r}: expected a number")
    return float(text)


READERS = {int: whole, float: number}
whole.__name__, number.__name__ = "int", "float"  # messages on flags name them


SECTIONS = ("rnn", "labels", "train")  # keys of a preset file that holds settings of several kinds


def is_file_name(text: str) -> bool:
    """Whether a preset's text is a path: it ends in .yaml or .yml, has a slash, or is a file here.

    >>> is_file_name("tas-b"), is_file_name("./my"), is_file_name("my.yaml")
    (False, True, True)
    """
    return text.endswith((".yaml", ".yml")) or "/" in text or os.path.isfile(text)


def sections_of(path: str | Path) -> frozenset[str]:
    """The sections a preset file has: none where it holds settings of one kind.

    Raises:
        InputError: no such file, not YAML, no mapping.
    """
    return frozenset(_content(path)) & frozenset(SECTIONS)


def read_section(path: str | Path, section: str) -> tuple[dict[str, Any], str]:
    """What a preset file says of a section, and where, for error messages; a section that is not there is empty."""
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
    from rnnreranker.base.files.yaml_files import read_yaml

    content = read_yaml(path, "preset file")
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a mapping such as `k: 10`")
    return content
