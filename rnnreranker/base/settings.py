"""Settings: frozen dataclasses whose fields carry limits and help; flags, YAML and presets are views of them."""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import functools
import math
import numbers
import operator
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, get_args, get_origin

from rnnreranker.base.arguments import flag
from rnnreranker.base.errors import InputError, brief, nearest

LIMITS = {"at_least": (operator.ge, ">="), "above": (operator.gt, ">"), "at_most": (operator.le, "<=")}
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # as typed, of less than 4,000 digits
WORDS = {"true": True, "yes": True, "false": False, "no": False}  # of a boolean, as typed
SECTIONS = ("rnn", "labels", "train")  # keys of a preset file that holds settings of several kinds


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
    about = {name: value for name, value in locals().items() if name not in ("default", "meaning")}
    return dataclasses.field(default=default, metadata={"help": meaning, **about})


def context_setting(default: int = 60) -> Any:
    """The field `context`: the number N of candidates, with one default for all methods."""
    return setting(default, "N: candidates of a query that take part; others stay below", at_least=1)


class Typed(str):
    """A value as typed by the user, still to be read as the type of its setting."""


class Hint(NamedTuple):
    """What a field may be: values of some types, None if it is optional.

    literal: the words of a Literal; items: the types of the elements of a sequence.
    """

    field: dataclasses.Field[Any]
    types: tuple[Any, ...]
    literal: tuple[str, ...]
    optional: bool
    items: tuple[Any, ...]

    @property
    def number(self) -> Any:
        """int, float or bool; None for others."""
        return next((one for one in self.types if one in (int, float, bool)), None)

    @property
    def words(self) -> list[str]:
        """The words that a text may be; empty = any."""
        return list(self.literal) or list(self.field.metadata.get("one_of", list)())

    @property
    def flag(self) -> str:
        """Its name on the command line, with _ for -."""
        return str(self.field.metadata.get("flag") or self.field.name).replace("-", "_")

    @property
    def expected(self) -> str:
        """The values that it takes, in words."""
        kind = self.number
        if words := self.words:
            said = f"one of {', '.join(words)}"
        elif kind in (int, float):
            limits = [
                f"{sign} {value:g}" for name, (_, sign) in LIMITS.items() if (value := self._limit(name)) is not None
            ]
            said = " ".join(["an integer" if kind is int else "a finite number", " and ".join(limits)]).strip()
        else:
            named = {bool: "true or false", str: "a text"}
            said = " or ".join(named.get(one) or one.__name__ for one in self.types)
        return f"{said}{' or none' if self.optional else ''}"

    def checked(self, value: Any) -> tuple[Any, str]:
        """A value as a plain one, and the problem, or ""; 2.0 counts as 2, a `Typed` text as its value."""
        kind = self.number
        if isinstance(value, Typed):
            value = _read(value, kind)
        if value is None and self.optional:
            return None, ""
        given = value
        if kind in (int, float):
            good = isinstance(value, numbers.Real) and not isinstance(value, bool) and _fits(value)
            if good:
                value = int(value) if kind is int and value % 1 == 0 else float(value) if kind is float else value
                limits = ((better, self._limit(name)) for name, (better, _) in LIMITS.items())
                good = type(value) is kind and all(limit is None or better(value, limit) for better, limit in limits)
        else:
            good = isinstance(value, tuple(CHECKED.get(one, one) for one in self.types))
            good = good and not (isinstance(value, str) and value not in (self.words or [value]))
        return value, "" if good else f"{self.field.name}={brief(given)}: expected {self.expected}"

    def _limit(self, name: str) -> Any:
        return self.field.metadata.get(name)


CHECKED: dict[Any, Any] = {Any: object, Path: os.PathLike, Sequence: (list, tuple), tuple: (list, tuple)}


def _fits(value: Any) -> bool:
    return -(2**63) <= int(value) < 2**63 if isinstance(value, numbers.Integral) else math.isfinite(value)


def _read(text: str, kind: Any) -> Any:
    """The value of a typed text, or the text itself."""
    if kind is bool:
        return WORDS.get(text, str(text))
    if kind and NUMBER.fullmatch(text) and len(text) < 4000:
        return int(text) if kind is int and text.lstrip("+-").isdigit() else float(text)
    return str(text)


class _Unloaded(type):
    """Types whose modules need not be imported: a value is one if a class of its own has the name."""

    def __instancecheck__(cls, value: Any) -> bool:
        return cls.__name__ in {one.__name__ for one in type(value).__mro__}

    def __getattr__(cls, name: str) -> Any:  # of a module, as np.ndarray
        if name.startswith("__"):
            raise AttributeError(name)
        return _Unloaded(name, (), {})


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return Any if name == "Qrels" else _Unloaded(name, (), {})  # Qrels is a union; its readers check it


def hints_of(kind: Any) -> dict[str, Hint]:
    """Name → type and limits of each field of a settings class or request."""
    return _hints_of(kind)


@functools.cache
def _hints_of(kind: Any) -> dict[str, Hint]:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    declared: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        own = {name: said for name, said in vars(one).get("__annotations__", {}).items() if name in fields}
        names = _Names(vars(builtins) | vars(sys.modules[one.__module__]))
        declared |= typing.get_type_hints(type("Own", (), {"__annotations__": own}), {}, names)
    return {name: _hint(field, declared[name]) for name, field in fields.items()}


def _hint(field: dataclasses.Field[Any], declared: Any) -> Hint:
    union = get_origin(declared) in (typing.Union, types.UnionType)
    parts = get_args(declared) if union else (declared,)
    literal = [word for part in parts if get_origin(part) is typing.Literal for word in get_args(part)]
    kinds = [str if get_origin(part) is typing.Literal else get_origin(part) or part for part in parts]
    own = tuple(kind for kind in dict.fromkeys(kinds) if kind is not type(None))
    items = tuple(one for part in parts if get_origin(part) is Sequence for one in get_args(part))
    return Hint(field, own, tuple(literal), type(None) in kinds, items)


class Checked:
    """Base of dataclasses that check each field by its type and limits; numbers become plain Python numbers.

    Raises:
        InputError: all wrong values, in one message.
    """

    def __post_init__(self) -> None:
        problems = []
        for name, hint in hints_of(type(self)).items():
            value, problem = hint.checked(getattr(self, name))
            object.__setattr__(self, name, value)
            problems += [problem] if problem else []
        if problems:
            raise InputError("; ".join(problems))


@dataclasses.dataclass(frozen=True)
class Params(Checked):
    """Base of all settings.

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

    @classmethod
    def preset(cls, name: str) -> Self:
        """The settings of a preset; InputError: unknown (with the nearest names)."""
        if not isinstance(name, str) or name not in cls.presets:
            shown = str(name) if isinstance(name, str | Path) else brief(name)
            raise InputError(
                f"preset {shown}: not known; give a YAML file or a known one, {nearest(shown, cls.presets)}"
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
        with located(shown):
            return cls(
                **typed(values, {name: hint for name, hint in hints_of(cls).items() if name not in fixed}), **fixed
            )

    @classmethod
    def from_yaml(cls, path: str | Path, base: Self | None = None) -> Self:
        """The settings of a YAML file, or of its section `cls.section`, over `base` or the defaults.

        Raises:
            InputError: no such file, not YAML, unknown settings (with the nearest names), values out of range.
        """
        sections = _sections(path)
        with located(str(path) if "" in sections else f"{path}: {cls.section}"):
            content = cls.of_section(sections.get("", sections.get(cls.section, {})))
            return dataclasses.replace(base or cls(), **typed(content, hints_of(cls)))

    @classmethod
    def of_section(cls, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """The part of a section of a preset file that belongs to these settings."""
        return content

    def to_dict(self) -> dict[str, Any]:
        """All fields by name: `type(params)(**params.to_dict()) == params`."""
        return dataclasses.asdict(self)


def typed(values: Mapping[str, Any], hints: Mapping[str, Hint]) -> dict[str, Any]:
    """Values by name, texts of YAML as numbers, `none` as None where it is allowed; InputError: as `check_names`."""
    check_names(values, hints)
    read = {}
    for name, value in values.items():
        number = hints[name].number is float and isinstance(value, str)  # 1e-5 is a text in YAML
        read[name] = Typed(value) if number else value
        if hints[name].optional and str(value) == "none":
            read[name] = None
    return read


def check_names(values: Iterable[str], known: Iterable[str]) -> None:
    """Raise InputError for names of settings that are not known, with the nearest ones."""
    if unknown := [name for name in values if name not in known]:
        raise InputError("; ".join(f"no setting {name}, {nearest(str(name), known)}" for name in unknown))


@contextlib.contextmanager
def located(where: str) -> Iterator[None]:
    """A block whose errors begin with their location; "" = unchanged."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from None


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


def is_file_name(text: str) -> bool:
    """Whether a preset's text is a path: ends in .yaml or .yml, has a slash, or is a file."""
    return text.endswith((".yaml", ".yml")) or "/" in text or os.path.isfile(text)


def sections_of(path: str | Path) -> frozenset[str]:
    """The sections of a preset file; InputError: unreadable, no mapping."""
    return frozenset(_sections(path)) - {""}


def _sections(path: str | Path) -> dict[str, dict[str, Any]]:
    """The values of each section of a preset file; "" = a file without sections."""
    from rnnreranker.base.strict import read_yaml

    content = read_yaml(path, "preset file")
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a mapping such as `k: 10`")
    if (schema := content.pop("schema", 1)) != 1:
        raise InputError(f"{path}: schema {schema!r} is not known; this version reads schema 1")
    if not set(content) & set(SECTIONS):
        return {"": content}
    for section, values in content.items():
        if section not in SECTIONS or not isinstance(values, dict | None):
            raise InputError(f"{path}: {section}: expected mappings of settings to values in {', '.join(SECTIONS)}")
    return {section: values or {} for section, values in content.items()}
