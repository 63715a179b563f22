"""Strict JSON and YAML: every error, and a repeated key, is one line with file and line.

Plain words of YAML are numbers, null, `true` and `false`. All others, as `yes`, `010` and `1e-5`, are texts; a setting
that is a number reads them.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text

KeyPath = tuple[str | int, ...]  # keys and positions from the root of a YAML document
DEEPEST = 100  # mappings and lists of YAML in one another


def read_json(path: str | os.PathLike[str], what: str = "file", repair: str = "get or write it again") -> Any:
    """The content of a JSON file; InputError: missing, or not JSON, with the line.

    what: the kind of file; repair: the remedy; both for messages.
    """
    text = read_text(path, what)
    try:
        return _decoded(text)
    except ValueError as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{path}{line}: not JSON ({getattr(error, 'msg', error)}); {repair}") from None


def parse_json(text: str, where: str) -> Any:
    """The value of a JSON text at `where`; InputError: not JSON."""
    try:
        return _decoded(text)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error})") from None


def parse_record(text: str, where: str, expected: str = "an object") -> dict[str, Any]:
    """The JSON object of a line at `where`; InputError: not JSON, or no object."""
    return checked_record(parse_json(text, where), where, expected)


def checked_record(value: Any, where: str, expected: str = "an object") -> dict[str, Any]:
    """The value of a JSON text if it is an object; InputError: another value."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: a JSON {type(value).__name__}; expected {expected}")
    return value


def _decoded(text: str) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_distinct)
        if "\\u" in text and "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no character
    except RecursionError:
        raise ValueError("nested too deep") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair, which UTF-8 cannot hold") from None
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)} stands there a second time")
    return values


def read_yaml(path: str | os.PathLike[str], what: str = "file") -> Any:
    """The content of a YAML file; InputError: missing, not YAML, a repeated key, with the line."""
    return copy.deepcopy(parse_yaml(read_text(path, what), path)[0])  # the caller's own: what is parsed is kept


def parse_yaml(text: str, path: str | os.PathLike[str]) -> tuple[Any, dict[KeyPath, int]]:
    """Content (do not change it) and the line of every path of keys, except of those within an alias.

    InputError: as `read_yaml`.
    """
    try:
        return _parsed(text)
    except Exception as error:  # a value that its tag does not fit fails in as many ways as there are tags
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
        said = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise InputError(f"{path}:{line + 1}: not YAML ({said})") from None


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[Any, dict[KeyPath, int]]:
    """As `parse_yaml`, cached because many specs share parts."""
    import yaml

    if sum(map(text.count, "[{-?:")) > 50 * DEEPEST:  # libyaml's composer would overrun the stack
        depth = 0
        for event in yaml.parse(text, Loader=_loader()):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise _fault(f"nested more than {DEEPEST} deep", event)
    loader = _loader()(text)
    try:
        lines: dict[KeyPath, int] = {(): 1}
        if (root := loader.get_single_node()) is not None:
            _note(root, (), 1, lines, {})
        return None if root is None else loader.construct_document(root), lines
    finally:
        loader.dispose()


@functools.cache
def _loader() -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's is 8 times as fast
        yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012

    for tag, word in _WORDS.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{word})$"), None)
    return Loader


def _note(node: Any, path: KeyPath, line: int, lines: dict[KeyPath, int], known: dict[Any, bool]) -> None:
    """Note the lines of a node and of those in it; known: nodes, and whether all in them is noted."""
    lines[path] = line
    if len(path) > DEEPEST or known.get(node) is False:
        raise _fault(f"nested more than {DEEPEST} deep", node)
    if node in known:
        return
    known[node] = False
    entries = [] if node.id == "scalar" else node.value if node.id == "mapping" else [(None, one) for one in node.value]
    keys: set[Any] = set()
    for number, (key, value) in enumerate(entries):
        if key is not None and key.id != "scalar":
            raise _fault("a key that is no text", key)
        name = number if key is None else key.value
        if name in keys:
            raise _fault(f"key {name} stands here a second time", key)
        keys.add(name)
        _note(value, (*path, name), (key or value).start_mark.line + 1, lines, known)
    known[node] = True


def _fault(problem: str, at: Any) -> Exception:
    import yaml

    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


_WORDS = {  # tag → its plain words
    "null": "~|null|Null|NULL|",
    "bool": "true|True|TRUE|false|False|FALSE",
    "int": "[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)",
    "float": r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "merge": "<<",
}
