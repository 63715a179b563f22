"""`regress --upgrade FILE`: a spec, or entries that specs share, in today's form; comments and anchors stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files import read_text
from rnnreranker.base.files.yaml_files import parse_yaml
from rnnreranker.base.method import find, names
from rnnreranker.base.method_lists import moved
from rnnreranker.base.settings import former_names
from rnnreranker.regress.specs.checks import SCHEMA
from rnnreranker.regress.specs.methods import flags_of, options_of
from rnnreranker.regress.specs.spec import MODULES, WORKS
from rnnreranker.regress.upgrade.edits import MERGE, Edits
from rnnreranker.regress.upgrade.uses import KINDS, check, of_training, renamed
from rnnreranker.regress.upgrade.works import of_recovery, of_study

BESIDE = ("needs", "query_set", "of")  # options of works that are no flags


def upgrade(path: Path) -> tuple[str, list[str]]:
    """The text of a file in today's form, and what was changed, each with file:line.

    Raises:
        InputError: no such file, not YAML; everything that has no form today, each with file:line.
    """
    text = read_text(path, "spec")
    content, _, strange = parse_yaml(text, path)
    if strange or not isinstance(content, dict):
        problems = [f"{path}:{line}: {said}" for said, line in strange]
        raise InputError("; ".join(problems) or f"{path}:1: expected a mapping with schema, name, …")
    if content.get("schema", SCHEMA) != SCHEMA:
        raise InputError(f"{path}: schema {content['schema']!r}; expected {SCHEMA}")
    upgraded = _Upgrade(text, path)
    upgraded.entries(yaml.compose(text, yaml.SafeLoader), content)
    if upgraded.problems:
        raise InputError("; ".join(f"{path}:{line}: {said}" for line, said in sorted(set(upgraded.problems))))
    made = upgraded.edits.applied()
    try:
        parse_yaml(made, path)
    except InputError as error:
        said = str(error).removeprefix(f"{path}:")
        raise InputError(
            f"{path}: in today's form it would have, in line {said}; write what an anchor shares where it is used"
        ) from None
    return made, [f"{path}:{line}: {said}" for line, said in sorted(set(upgraded.edits.said))]


class _Upgrade:
    """Walks over the entries of a file, and gathers edits and problems."""

    def __init__(self, text: str, path: Path) -> None:
        self.edits, self.path = Edits(text), path
        self.problems: list[tuple[int, str]] = []
        self._seen: set[int] = set()

    def entries(self, root: Any, content: Mapping[str, Any]) -> None:
        """The conditions, models and works of a file."""
        for key, node in _items(root):
            for name, entry in _items(node) if key.value in ("indexes", "conditions", "models", *WORKS) else ():
                its = (content.get(key.value) or {}).get(name.value)
                if not isinstance(its, dict) or not isinstance(entry, yaml.MappingNode):
                    continue
                if key.value in WORKS:
                    self._noting(name, self._work, WORKS[key.value], entry, its)
                    continue
                for field, value in _items(entry):
                    if key.value == "indexes" and field.value == "parts":
                        self._parts(value)
                    elif field.value in KINDS:
                        self._uses(KINDS[field.value], value, its.get(field.value))

    def _parts(self, node: Any) -> None:
        """The settings of the parts of an index, renamed; the spec that has them says what is wrong with others."""
        for part, settings in _items(node):
            now = former_names(find("part", part.value).Params) if part.value in names("part") else {}
            for key, _ in _items(settings):
                if key.value in now and id(key) not in self._seen:
                    self._seen.add(id(key))
                    self.edits.replace(key, now[key.value])
                    self.edits.say(key, f"{part.value}: {key.value} → {now[key.value]}")

    def _uses(self, kind: str, node: yaml.Node, content: Any) -> None:
        if isinstance(node, yaml.SequenceNode) and isinstance(content, list):
            for one, its in zip(node.value, content, strict=True):
                self._uses(kind, one, its)
        elif isinstance(node, yaml.MappingNode) and isinstance(content, dict) and len(content) == 1:
            self._noting(node, self._use, kind, node, content)

    def _noting(self, at: yaml.Node, call: Callable[..., None], *given: Any) -> None:
        """What a call does to an entry, once where several have it by an alias; problems at its line."""
        if id(given[1]) in self._seen:
            return
        self._seen.add(id(given[1]))
        try:
            call(*given)
        except InputError as error:
            self.problems.append((at.start_mark.line + 1, str(error)))

    def _use(self, kind: str, node: yaml.MappingNode, content: Mapping[str, Any]) -> None:
        """`{name: {settings}}`."""
        [(name, settings)] = content.items()
        own = dict(settings) if isinstance(settings, dict) else {}
        key, value = node.value[0]
        if key.value == MERGE:
            return
        today, called, added = renamed(kind, str(name), own)
        loss, gone = of_training(str(name), own) if kind == "trained-model" else ({}, [])
        if today != name:
            self.edits.replace(key, today)
            self.edits.say(key, f"{name} → {today}")
        for each, _ in value.value if isinstance(value, yaml.MappingNode) else ():
            if each.value in called:
                self.edits.replace(each, called[each.value])
                self.edits.say(each, f"{name}: {each.value} → {called[each.value]}")
        new = added | loss
        if new and isinstance(value, yaml.MappingNode):
            self.edits.move(value, {*gone, *loss}, new)
        elif new:
            self.edits.replace(value, new)
        for each in gone:
            self.edits.say(value, f"{name}: {each} → loss")
        final = new | {called.get(each, each): its for each, its in own.items() if each not in (*gone, *loss)}
        check(kind, today, final)

    def _work(self, kind: str, node: yaml.MappingNode, content: Mapping[str, Any]) -> None:
        """A study, a recovery, …: of settings that a merge brings, with others of its own, all stand in its own."""
        change = {"study": of_study, "recovery": of_recovery}.get(kind)
        changes = change(content) if change else {}
        own = {key.value: value for key, value in node.value}
        gone = {name for name, value in changes.items() if value is None and name in own}
        new = {name: value for name, value in changes.items() if value is not None}
        for name in [name for name in new if name not in own and not gone]:
            del new[name]  # what a merge brings is changed where it stands
        there = [name for name in new if name in own and self.edits.stands_in(own[name], node)]
        for each in there:
            self.edits.replace(own[each], new[each])
            self.edits.say(own[each], f"{each}: in today's form")
        to = {name: value for name, value in new.items() if name not in there}
        if gone or to:
            self.edits.move(node, gone | set(to), to)
        for key, _ in node.value:
            if key.value in gone:
                self.edits.say(key, f"{key.value} → {', '.join(to or new)}")
        self._check_options(kind, {name: its for name, its in content.items() if name not in changes} | new)

    def _check_options(self, kind: str, options: Mapping[str, Any]) -> None:
        """Refuse options that the command does not have, with where they are written now."""
        module = MODULES[kind]
        known = [*options_of(module), *BESIDE]
        problems = []
        for name in options:
            if name not in known:
                now = moved("--" + str(name).replace("_", "-"), flags_of(module))
                problems.append(now or f"{module} has no option {name}; {nearest(str(name), known)}")
        if problems:
            raise InputError("; ".join(problems))


def _items(node: Any) -> Iterator[tuple[Any, Any]]:
    """Keys and values of a mapping, but for merges."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value != MERGE:
            yield key, value
