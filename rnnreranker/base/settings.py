"""Settings and requests: frozen dataclasses whose fields carry limits and help; flags, YAML, presets and the written
form `name:key=value` are views of them.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import functools
import numbers
import operator
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, get_args, get_origin

from rnnreranker.base.errors import InputError, argument, brief, nearest

PRESET = "preset"  # a setting of every method that has presets
_FORM = re.compile(r"(?P<name>[^\n]*?):(?P<settings>\w+=.*)", re.DOTALL)
_SETTING = re.compile(r'(?P<key>\w+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^,"]*))(?:,(?=\w+=)|$)', re.DOTALL)


@dataclass(frozen=True)
class Written:
    """A method and its settings.

    Attributes:
        name: of the method.
        params: settings by name; those of a line are texts.
        preset: a published name or a YAML file, which `params` override; "" = none.

    >>> Written.read("rnn:k=5,preset=tas-b")
    Written(name='rnn', params={'k': '5'}, preset='tas-b')
    >>> str(Written("rocchio", {"fb_docs": 5, "query": "a, b"}))
    'rocchio:fb_docs=5,query="a, b"'
    """

    name: str
    params: dict[str, Any] = dataclasses.field(default_factory=dict)
    preset: str = ""

    @classmethod
    def read(cls, form: str | Mapping[str, Any] | Written) -> Written:
        """The method of a line, or of a mapping `{name: {key: value}}`; InputError: another form.

        Double quotes enclose a value with a comma or a quotation mark, which a backslash precedes. A colon without
        `key=` behind it belongs to the name.
        """
        if isinstance(form, Written):
            return form
        if isinstance(form, Mapping) and len(form) == 1:
            [(name, settings)] = form.items()
            if isinstance(settings, Mapping | None):
                params = dict(settings or {})
                return cls(str(name), params, str(params.pop(PRESET, "") or ""))
        if not isinstance(form, str) or not form:
            raise InputError(f"{form!r}: expected NAME or NAME:KEY=VALUE,…, or {{name: {{key: value}}}}")
        whole = _FORM.fullmatch(form)
        if whole is None:
            return cls(form)
        params, rest = {}, whole["settings"]
        while rest:
            one = _SETTING.match(rest)
            if one is None or one["key"] in params:
                said = "expected KEY=VALUE, each key once, a comma in a value in quotes"
                raise InputError(f"{form}: {rest.partition(',')[0]}: {said}")
            params[one["key"]] = one["plain"] if one["quoted"] is None else re.sub(r"\\(.)", r"\1", one["quoted"])
            rest = rest[one.end() :]
        return cls(whole["name"], params, str(params.pop(PRESET, "")))

    @property
    def given(self) -> dict[str, Any]:
        """The settings with the preset under its name."""
        return {PRESET: self.preset} | self.params if self.preset else dict(self.params)

    def beside(self, typed: Mapping[str, Any], of: str) -> Written:
        """This form with the settings of flags, perhaps `preset`; InputError: a setting in both. of: the flag of the
        form.

        >>> str(Written.read("evidence:k=5").beside({"lam": 0.4, "preset": "tas-b"}, "--method"))
        'evidence:preset=tas-b,k=5,lam=0.4'
        """
        if twice := [name for name in typed if name in self.given]:
            raise InputError(f"{of} {self} and {argument(twice[0])}: {twice[0]} twice; give it once")
        return Written.read({self.name: {**self.given, **typed}})

    def __str__(self) -> str:
        settings = ",".join(f"{key}={shown(value)}" for key, value in self.given.items())
        return f"{self.name}:{settings}" if settings else self.name


def read_joined(form: str | Mapping[str, Any] | Written | Sequence[Any]) -> list[Written]:
    """The methods of a line with + between them, or of a list.

    >>> [one.name for one in read_joined("bm25:k1=0.9+dense")]
    ['bm25', 'dense']
    """
    if isinstance(form, str):
        return _split(form, r"\+")
    return [Written.read(form)] if isinstance(form, Mapping | Written) else [Written.read(one) for one in form]


def read_listed(line: str) -> list[Written]:
    """The methods of a line with commas between them, as between their settings.

    >>> [str(one) for one in read_listed("dense,terms:language=zh,stemmer=none,bm25")]
    ['dense', 'terms:language=zh,stemmer=none', 'bm25']
    """
    return _split(line, r",(?!\w+=)")


def _split(line: str, sign: str) -> list[Written]:
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', line)  # those with odd numbers are in quotes
    pieces[::2] = [re.sub(sign, "\0", piece) for piece in pieces[::2]]
    forms = "".join(pieces).split("\0")
    if "" in forms:
        raise InputError(f"{line!r}: a name is missing before or after a separator")
    return [Written.read(one) for one in forms]


def shown(value: Any) -> str:
    """The value of a setting, in quotes if it has a comma, a quotation mark or a plus."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    value = Written.read(value) if isinstance(value, Mapping) else value
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    if text and not re.search(r'[,"+]', text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


LIMITS = {"at_least": (operator.ge, ">="), "above": (operator.gt, ">"), "at_most": (operator.le, "<=")}
LARGEST = {int: 2**63, float: sys.float_info.max}
WORDS = {"true": True, "yes": True, "false": False, "no": False}  # of a boolean, as typed
SECTIONS = ("rnn", "labels", "train")  # keys of a preset file that holds settings of several kinds


ABOUT: dict[str, Any] = {  # what a field may say of itself
    **dict.fromkeys(LIMITS),
    **dict.fromkeys(("help", "flag", "metavar", "method"), ""),
    **{"one_of": list, "many": False},
}


def setting(default: Any, meaning: str, **about: Any) -> Any:
    """A field of `Params` or of a request.

    Args:
        default: its value, also in presets that leave it out.
        meaning: its help text, one line.
        about: at_least, at_most, above (limits of a number; floats are always finite); one_of (returns the words that
            a text may be); flag (its name on the command line, if it differs); metavar (the value in the help; "" =
            the flag's name, N for an integer); method (a kind of method, whose names begin the help text); many
            (whether the flag may be repeated).
    """
    return dataclasses.field(default=default, metadata={"help": meaning, **about})


def context_setting(default: int = 60) -> Any:
    """The field `context`: the number N of candidates, with one default for all methods."""
    return setting(default, "N: candidates of a query that take part; others stay below", at_least=1)


class Hint(NamedTuple):
    """What a field may be: values of some types.

    about: see `setting`; literal: the words of a Literal; nones: what counts as None; items: the types of the elements
    of a sequence.
    """

    field: dataclasses.Field[Any]
    about: dict[str, Any]
    types: tuple[Any, ...]
    literal: tuple[str, ...]
    nones: tuple[Any, ...]
    items: tuple[Any, ...]

    @property
    def number(self) -> Any:
        """int, float or bool; None for others."""
        return next((one for one in self.types if one in (int, float, bool)), None)

    @property
    def words(self) -> list[str]:
        """The words that a text may be; empty = any."""
        return list(self.literal or self.about["one_of"]())

    @property
    def flag(self) -> str:
        """Its name on the command line, with _ for -."""
        return str(self.about["flag"] or self.field.name).replace("-", "_")

    @property
    def limits(self) -> list[tuple[Callable[[Any, Any], bool], str, float]]:
        """Comparison, its sign, and the limit of a number."""
        return [(*LIMITS[name], value) for name in LIMITS if (value := self.about[name]) is not None]

    @property
    def expected(self) -> str:
        """The values that it takes, in words."""
        kind = self.number
        if words := self.words:
            said = f"one of {', '.join(words)}"
        elif kind in (int, float):
            limits = " and ".join(f"{sign} {limit:g}" for _, sign, limit in self.limits)
            said = f"{'an integer' if kind is int else 'a finite number'} {limits}".strip()
        else:
            named = {bool: "true or false", str: "a text"}
            said = " or ".join(named.get(one) or one.__name__ for one in self.types)
        return f"{said}{' or none' if self.nones else ''}"

    def checked(self, value: Any) -> tuple[Any, str]:
        """A value as a plain one, and the problem, or ""; texts are read as numbers, 2.0 counts as the integer 2."""
        kind = self.number
        if isinstance(value, str | None) and value in self.nones:
            return None, ""
        if kind and isinstance(value, str):
            value = as_number(value, kind)
        elif isinstance(value, Mapping) and self.types == (str,):
            value = str(Written.read(value))
        given = value
        if kind in (int, float):
            good = isinstance(value, numbers.Real) and not isinstance(value, bool)
            good = good and abs(value) < LARGEST[kind] and kind(value) == value
            value = kind(value) if good else value
            good = good and all(better(value, limit) for better, _, limit in self.limits)
        else:
            good = isinstance(value, tuple(CHECKED.get(one, one) for one in self.types))
            good = good and not (isinstance(value, str) and value not in (self.words or [value]))
        return value, "" if good else f"{self.field.name}={brief(given)}: expected {self.expected}"


CHECKED: dict[Any, Any] = {Any: object, Path: os.PathLike, Sequence: (list, tuple), tuple: (list, tuple)}


def as_number(text: str, kind: Any) -> Any:
    """The int, float or bool of a text, or the text itself."""
    if kind is bool:
        return WORDS.get(text, text)
    with contextlib.suppress(ValueError):
        return int(text) if kind is int and text.lstrip("+-").isdigit() else float(text)
    return text


class _Unloaded(type):
    """Types whose modules need not be imported: a value is one if a class of its own has the name."""

    def __instancecheck__(cls, value: Any) -> bool:
        return cls.__name__ in [one.__name__ for one in type(value).__mro__]

    def __getattr__(cls, name: str) -> Any:  # of a module, as np.ndarray
        if name.startswith("__"):
            raise AttributeError(name)
        return _Unloaded(name, (), {})


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return Any if name == "Qrels" else _Unloaded(name, (), {})  # Qrels is a union; its readers check it


def hints_of(kind: type) -> dict[str, Hint]:
    """Name → type and limits of each field of a settings class or request."""
    return _hints_of(kind)


@functools.cache
def _hints_of(kind: Any) -> dict[str, Hint]:
    names = _Names(vars(builtins))
    for one in reversed(kind.__mro__):
        names |= vars(sys.modules[one.__module__])
    declared, hints = typing.get_type_hints(kind, {}, names), {}
    nones = (None, "none") if issubclass(kind, Params) else (None,)
    for field in dataclasses.fields(kind):
        said = declared[field.name]
        parts = get_args(said) if get_origin(said) in (typing.Union, types.UnionType) else (said,)
        args = {get_origin(part) or part: get_args(part) for part in parts}
        own = dict.fromkeys(str if one is typing.Literal else one for one in args if one is not types.NoneType)
        literal, items = args.get(typing.Literal, ()), args.get(Sequence, ())
        about = ABOUT | dict(field.metadata)
        hints[field.name] = Hint(field, about, (*own,), literal, nones if types.NoneType in args else (), items)
    return hints


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
            hint = nearest(str(name), cls.presets)
            raise InputError(f"preset {brief(name).strip(chr(39))}: not known; give a YAML file or a known one, {hint}")
        return cls.presets[name]

    @classmethod
    def named(cls, text: str | Path, base: Self | None = None) -> Self:
        """The settings of `--preset TEXT`: of a YAML file, or its section, over `base`; of a preset if TEXT is no path.

        Raises:
            InputError: no such file or preset, not YAML, unknown settings (with the nearest names), bad values.
        """
        if not isinstance(text, str | Path) or not is_file_name(str(text)):
            return cls.preset(text)  # type: ignore[arg-type]
        sections = sections_of(text)
        with located(str(text) if "" in sections else f"{text}: {cls.section}"):
            if (values := sections.get("", sections.get(cls.section))) is None:
                raise InputError(f"no such section; it has {', '.join(sections)}")
            return dataclasses.replace(base or cls(), **check_names(values, hints_of(cls)))

    @classmethod
    def of(cls, values: Mapping[str, Any], shown: str = "", **fixed: Any) -> Self:
        """The settings of a written form, and `fixed` ones; shown: the argument, for messages.

        Raises:
            InputError: unknown settings, with the nearest names; values out of range.
        """
        if not isinstance(values, Mapping):
            raise InputError(f"{brief(values)}: expected a mapping of settings to values")
        with located(shown):
            return cls(**check_names(values, hints_of(cls).keys() - fixed.keys()), **fixed)

    def to_dict(self) -> dict[str, Any]:
        """All fields by name: `type(params)(**params.to_dict()) == params`."""
        return dataclasses.asdict(self)


def check_names(values: Mapping[str, Any], known: Iterable[str], what: str = "setting") -> dict[str, Any]:
    """The values; InputError: names of settings that are not known, with the nearest ones."""
    if unknown := [name for name in values if name not in known]:
        raise InputError("; ".join(f"no {what} {name}, {nearest(str(name), known)}" for name in unknown))
    return dict(values)


@contextlib.contextmanager
def located(where: str) -> Iterator[None]:
    """A block whose errors begin with their location; "" = unchanged."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from None


def is_file_name(text: str) -> bool:
    """Whether a preset's text is a path: ends in .yaml or .yml, has a slash, or is a file."""
    return text.endswith((".yaml", ".yml")) or "/" in text or os.path.isfile(text)


def sections_of(path: str | Path) -> dict[str, Mapping[str, Any]]:
    """The values of each section of a preset file; "" = a file without sections; InputError: unreadable, no mapping."""
    from rnnreranker.base.files import read_yaml

    content = read_yaml(path, "preset file")
    sections = content if isinstance(content, dict) and {*content} & {*SECTIONS} else {"": content}
    for section, values in sections.items():
        if section not in ("", *SECTIONS) or not isinstance(values, dict | None) or content is None:
            known = ", ".join(SECTIONS)
            raise InputError(f"{path}: {section}: expected a mapping of settings, or such mappings in {known}")
    return {section: values or {} for section, values in sections.items()}


T = TypeVar("T")


def asked(kind: type[T], given: Mapping[str, Any]) -> T:
    """The request of a call from Python; InputError: unknown arguments, with the nearest names."""
    return kind(**check_names(given, hints_of(kind), "argument"))


class Request(Checked):
    """The arguments of a command or a library function; a subclass is a frozen dataclass.

    Raises:
        InputError: arguments of other types, or out of range, in one message.
    """

    def shown(self, name: str) -> str:
        """An argument's path or name, for messages; of an object the argument's name."""
        value = getattr(self, name)
        return str(value) if isinstance(value, str | Path) else argument(name)


Share = tuple[int, int]  # its number, from 0, and how many there are


@dataclass(frozen=True)
class ShareRequest(Request):
    """The share of a process: of encoded documents, of blocks of a graph, of labels."""

    shard_id: int | None = setting(None, "the share to make, from 0 (default: assemble them)", metavar="I")
    shard_num: int | None = setting(None, "how many shares there are", at_least=1)

    @property
    def share(self) -> Share | None:
        """The share of this process, None = the whole; InputError: one without the other, a number outside 0..N-1."""
        number, count = self.shard_id, self.shard_num
        if number is None and count is None:
            return None
        if number is None or count is None:
            both = f"{argument('shard_id')} and {argument('shard_num')}"
            raise InputError(f"{both} go together: give both, or neither to put the shares together")
        if not 0 <= number < count:
            last = f"expected 0..{count - 1}, as {argument('shard_num', count)} are counted from 0"
            raise InputError(f"{argument('shard_id', number)}: no such share; {last}")
        return number, count
