"""Edits of a YAML text through the marks of its nodes: what is not changed stays, comments and anchors too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

MERGE = "<<"


def flow(value: Any) -> str:
    """A value as YAML on one line, without brackets around it.

    >>> flow({"collective": {"fb_clusters": 24}}), flow("joint:mass=share"), flow(1e-05)
    ('{collective: {fb_clusters: 24}}', "'joint:mass=share'", '1.0e-05')
    """
    dumped: str = yaml.safe_dump([value], default_flow_style=True, width=10**9, sort_keys=False, allow_unicode=True)
    return dumped.strip()[1:-1]


class Edits:
    """Changes of a text, applied together; and what they say, with the line that each is of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.said: list[tuple[int, str]] = []
        self._spans: list[tuple[int, int, str]] = []

    def replace(self, node: yaml.Node, new: Any) -> None:
        """Another value in place of a node, which stands where it is defined."""
        start, end = node.start_mark.index, node.end_mark.index
        self._spans.append((start, end, flow(new) if end > start else f" {flow(new)}"))  # nothing: right behind a colon

    def move(self, mapping: yaml.MappingNode, gone: set[str], new: Mapping[str, Any]) -> None:
        """Take keys out of a mapping and put others before those that stay."""
        starts = [key.start_mark.index for key, _ in mapping.value]
        names = [key.value for key, _ in mapping.value]
        inserted = [f"{key}: {flow(value)}" for key, value in new.items()]
        if not names:
            self._spans.append((mapping.start_mark.index, mapping.end_mark.index, f"{{{', '.join(inserted)}}}"))
            return
        staying = [number for number, name in enumerate(names) if name not in gone]
        sign = ", " if mapping.flow_style else "\n" + " " * mapping.value[0][0].start_mark.column
        if not staying:
            self._spans.append((starts[0], self._end(mapping, len(names) - 1), sign.join(inserted)))
            return
        if inserted:
            self._spans.append((starts[staying[0]], starts[staying[0]], sign.join(inserted) + sign))
        going = [number for number, name in enumerate(names) if name in gone]
        if not mapping.flow_style:
            for number in going:
                first = self.text.rfind("\n", 0, starts[number]) + 1
                self._spans.append((first, min(self._end(mapping, number) + 1, len(self.text)), ""))
            return
        self._spans += [(starts[number], starts[number + 1], "") for number in going if number < staying[-1]]
        if staying[-1] < len(names) - 1:  # the last ones go, with the comma before them
            before = self.text[: starts[staying[-1] + 1]].rstrip().removesuffix(",").rstrip()
            self._spans.append((len(before), self._end(mapping, len(names) - 1), ""))

    def _end(self, mapping: yaml.MappingNode, number: int) -> int:
        """Where an item of a mapping ends, in block style its line, with what is behind it there."""
        key, value = mapping.value[number]
        after = mapping.value[number + 1][0].start_mark if number + 1 < len(mapping.value) else mapping.end_mark
        if mapping.flow_style:
            return len(self.text[: after.index - 1].rstrip())
        inside = key.end_mark.index <= value.start_mark.index and value.end_mark.index <= after.index  # no alias
        in_block = isinstance(value, yaml.CollectionNode) and not value.flow_style
        block = in_block or getattr(value, "style", None) in ("|", ">")  # its end is that of a line
        last = (
            len(self.text[: after.index].rstrip())
            if inside and block
            else self.text.find("\n", value.end_mark.index if inside else key.end_mark.index)
        )
        return last if last >= 0 else len(self.text)

    @staticmethod
    def stands_in(value: yaml.Node, mapping: yaml.MappingNode) -> bool:
        """Whether a value of a mapping is written there, not behind an alias."""
        return bool(mapping.start_mark.index <= value.start_mark.index < mapping.end_mark.index)

    def say(self, node: yaml.Node, said: str) -> None:
        """Note a change at a node."""
        self.said.append((node.start_mark.line + 1, said))

    def applied(self) -> str:
        """The text with all changes."""
        text = self.text
        for start, end, new in sorted(self._spans, reverse=True):
            text = text[:start] + new + text[end:]
        return text
