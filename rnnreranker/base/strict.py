"""Strict JSON and YAML: every error, and a repeated key, is one line with file and line.

Plain words of YAML are numbers, null, `true` and `false`. All others, as `yes`, `010` and `1e-5`, are texts; a setting
that is a number reads them.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections import Counter
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text

KeyPath = tuple[str | int, ...]  # keys and positions from the root of a YAML document
DEEPEST = 100  # mappings and lists of YAML in one another


def read_json(path: str | os.PathLike[str], what: str = "file", repair: str = "get or write it again") -> Any:
    """The content of a JSON file; InputError: missing, or not JSON, with the line.

    what: the kind of file; repair: the remedy; both for messages.
    """
    return parse_json(read_text(path, what), str(path), f"; {repair}", by_line=True)


def parse_json(text: str, where: str, repair: str = "", by_line: bool = False) -> Any:
    """The value of a JSON text at `where`, or from its line 1 on (`by_line`); InputError: not JSON."""
    try:
        value = json.loads(text, object_pairs_hook=_distinct)
        if "\\u" in text and "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no character
        return value
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if by_line and isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{where}{line}: not JSON ({error}){repair}") from None


def parse_record(text: str, where: str, expected: str = "an object") -> dict[str, Any]:
    """The JSON object of a line at `where`; InputError: not JSON, or no object."""
    return checked_record(parse_json(text, where), where, expected)


def checked_record(value: Any, where: str, expected: str = "an object") -> dict[str, Any]:
    """The value of a JSON text if it is an object; InputError: another value."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: a JSON {type(value).__name__}; expected {expected}")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {key} stands there a second time")
    return values


def read_yaml(path: str | os.PathLike[str], what: str = "file") -> Any:
    """The content of a YAML file; InputError: missing, not YAML, a repeated key, with the line."""
    return parse_yaml(read_text(path, what), path)[0]


def parse_yaml(text: str, path: str | os.PathLike[str]) -> tuple[Any, dict[KeyPath, int]]:
    """Content, and the line of every path of keys, except of those within an alias.

    InputError: as `read_yaml`.
    """
    try:
        if len(text) > 50 * DEEPEST:
            _check_depth(text)
        loader = _loader()(text)
        lines: dict[KeyPath, int] = {(): 1}
        root = loader.get_single_node()
        if root is not None:
            _note(root, (), 1, lines, set())
        return None if root is None else loader.construct_document(root), lines
    except Exception as error:  # a value that its tag does not fit fails in as many ways as there are tags
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
        said = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise InputError(f"{path}:{line + 1}: not YAML ({said})") from None


def _check_depth(text: str) -> None:
    """Raise an error for YAML that is nested so deep that libyaml would overrun the stack."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            mark: Any = event.start_mark
            raise yaml.MarkedYAMLError(problem=f"nested more than {DEEPEST} deep", problem_mark=mark)


@functools.cache
def _loader() -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's is 8 times as fast
        yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012

    for tag, word in _WORDS.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{word})$"), None)
    return Loader


def _note(node: Any, path: KeyPath, line: int, lines: dict[KeyPath, int], known: set[Any]) -> None:
    """Note the lines of a node and of those in it, once for each node."""
    lines[path] = line
    if node in known:
        return
    known.add(node)
    entries = node.value if node.id == "mapping" else [(None, one) for one in node.value if node.id == "sequence"]
    keys = set[Any]()
    for number, (key, value) in enumerate(entries):
        name = number if key is None else key.value if key.id == "scalar" else None
        if name is None or name in keys:
            import yaml

            problem = "a key that is no text" if name is None else f"key {name} stands here a second time"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        keys.add(name)
        _note(value, (*path, name), (key or value).start_mark.line + 1, lines, known)


_WORDS = {  # tag → its plain words
    "null": "~|null|Null|NULL|",
    "bool": "true|True|TRUE|false|False|FALSE",
    "int": "[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)",
    "float": r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "merge": "<<",
}
