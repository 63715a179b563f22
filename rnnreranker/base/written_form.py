"""A method and its settings in one line, `name:key=value,key=value`: the same in Python, in a shell and in YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError

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
    params: dict[str, Any] = field(default_factory=dict)
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
        params = {}
        rest = whole["settings"]
        while rest:
            one = _SETTING.match(rest)
            if one is None:
                raise InputError(f"{form}: {rest.partition(',')[0]}: expected KEY=VALUE, a comma in a value in quotes")
            if one["key"] in params:
                raise InputError(f"{form}: {one['key']} twice; give it once")
            value = one["plain"] if one["quoted"] is None else re.sub(r"\\(.)", r"\1", one["quoted"])
            params[one["key"]] = value
            rest = rest[one.end() :]
        return cls(whole["name"], params, str(params.pop(PRESET, "")))

    def beside(self, typed: Mapping[str, Any], of: str) -> Written:
        """This form with the settings of flags, perhaps `preset`; InputError: a setting in both. of: the flag of the
        form.

        >>> str(Written.read("evidence:k=5").beside({"lam": 0.4, "preset": "tas-b"}, "--method"))
        'evidence:preset=tas-b,k=5,lam=0.4'
        """
        own = dict(typed)
        preset = str(own.pop(PRESET, None) or "")
        if twice := [name for name in own if name in self.params] + ([PRESET] if preset and self.preset else []):
            raise InputError(f"{of} {self} and {argument(twice[0])}: {twice[0]} twice; give it once")
        return Written(self.name, {**self.params, **own}, preset or self.preset)

    def __str__(self) -> str:
        params = {**({PRESET: self.preset} if self.preset else {}), **self.params}
        return (
            f"{self.name}:{','.join(f'{key}={shown(value)}' for key, value in params.items())}" if params else self.name
        )


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
