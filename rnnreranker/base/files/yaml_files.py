"""Strict YAML: every error of the parser, and every ambiguity, is one line with file and line.

Numbers, `true` and `false` are those of YAML 1.2. Other plain words of YAML 1.1 (`yes`, `010`, `1:30`, `1_000`, dates)
and repeated keys are errors.
"""

from __future__ import annotations

import copy
import functools
import os
import re
from typing import Any

import yaml

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text

KeyPath = tuple[str | int, ...]  # keys and positions from the root of a YAML document

DEEPEST = 100  # mappings and lists in one another
MOST = 100_000  # values of a document, those of an alias counted every time it stands there


def read_yaml(path: str | os.PathLike[str], what: str = "file") -> Any:
    """The content of a YAML file.

    Raises:
        InputError: missing, not YAML, a repeated key, an ambiguous plain word; with the line.
    """
    content, _, strange = parse_yaml(read_text(path, what), path)
    if strange:
        raise InputError("; ".join(f"{path}:{line}: {said}" for said, line in strange))
    return copy.deepcopy(content)  # the caller's own: what is parsed is kept


def parse_yaml(text: str, path: str | os.PathLike[str]) -> tuple[Any, dict[KeyPath, int], list[tuple[str, int]]]:
    """Content (do not change it), the line of every path of keys, and ambiguities with their lines; InputError: not
    YAML.
    """
    try:
        return _parsed(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"{path}:{line}: not YAML ({error.reason})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise InputError(f"{where}: not YAML ({getattr(error, 'problem', None) or 'unreadable'})") from None


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is eight times as fast
_OPENERS = "[{-?:"  # every mapping and every list of YAML has one
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_OCTAL = re.compile(r"[-+]?0[0-9_]+")  # YAML 1.1 makes 15 of 017, and a text of 018
_AMBIGUOUS = {
    "bool": "true or false to some readers of YAML and a text to others; expected true, false, or a text in quotes",
    "int": "a number to some readers of YAML and a text to others; expected digits, or a text in quotes",
    "float": "a number to some readers of YAML and a text to others; expected digits, or a text in quotes",
    "timestamp": "a date to some readers of YAML; expected a text in quotes",
}


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[Any, dict[KeyPath, int], list[tuple[str, int]]]:
    """As `parse_yaml`, cached because many specs share parts; errors are YAMLErrors."""
    if sum(map(text.count, _OPENERS)) > 50 * DEEPEST:
        _check_depth(text)  # libyaml's composer would overrun the stack
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        lines: dict[KeyPath, int] = {(): 1}
        strange: list[tuple[str, int]] = []
        if root is not None:
            _note_lines(root, (), lines, strange, [0])
        content = None if root is None else _constructed(loader, root)
        return content, lines, strange
    finally:
        loader.dispose()


def _constructed(loader: Any, root: yaml.Node) -> Any:
    try:
        return loader.construct_document(root)
    except yaml.YAMLError:
        raise
    except Exception as error:  # `!!int x` and its like fail in as many ways as there are tags
        raise _fault(f"a value that its tag does not fit: {error}", root) from None


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _fault(f"nested more than {DEEPEST} deep", event)


def _fault(problem: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


def _note_lines(
    node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], strange: list[tuple[str, int]], count: list[int]
) -> None:
    count[0] += 1
    if len(path) > DEEPEST:  # an alias to what it stands in too
        raise _fault(f"nested more than {DEEPEST} deep", node)
    if count[0] > MOST:
        raise _fault(f"more than {MOST} values, those of aliases counted", node)
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise _fault("a key that is no text", key)
            if key.value in seen:
                strange.append((f"key {key.value} stands here a second time", line))
            seen.add(key.value)
            strange += _strange(key, line)
            _note_lines(value, (*path, key.value), lines, strange, count)
            lines[(*path, key.value)] = line
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            _note_lines(value, (*path, position), lines, strange, count)
    elif isinstance(node, yaml.ScalarNode):
        strange += _strange(node, lines[path])


def _strange(node: yaml.ScalarNode, line: int) -> list[tuple[str, int]]:
    kind, value = node.tag.rpartition(":")[2], node.value
    if node.style:
        return []
    if _OCTAL.fullmatch(value):
        return [(f"{value}: a number does not begin with 0; expected it without the 0, or a text in quotes", line)]
    plain = {
        "bool": value.lower() in ("true", "false"),
        "int": bool(_INTEGER.fullmatch(value)),
        "float": bool(_FLOAT.fullmatch(value)),
        "timestamp": False,
    }
    return [] if plain.get(kind, True) else [(f"{value}: {_AMBIGUOUS[kind]}", line)]
