"""A page for each command, of what its `--help` says: usage, groups, flags (each with an anchor), examples."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import re
import textwrap
from collections.abc import Iterator

from rnnreranker.__main__ import COMMANDS

BESIDE = {  # commands of two words: the module that has the parser, and the function that makes it
    "tune train": ("rnnreranker.tune", "make_train_parser"),
}
OVERVIEW = """\
# Commands

`python -m rnnreranker.COMMAND`, or `rnnreranker COMMAND` once the package is installed. Each has `--help`, which
is what these pages show. `python -m rnnreranker methods` lists every method, `methods NAME` the settings of one, and
`python -m rnnreranker doctor` says what this machine can do and what to install for the rest.

| command | what it does |
|---|---|
"""


def pages() -> dict[str, str]:
    """The pages in Markdown, by their names without an ending."""
    rows = "".join(f"| [{name}](commands/{name}.myst) | {escaped(what)} |\n" for name, what in COMMANDS.items())
    toctree = "\n".join(f"{name} <commands/{name}>" for name in COMMANDS)
    found = {"commands": f"{OVERVIEW}{rows}\n```{{toctree}}\n:hidden:\n\n{toctree}\n```\n"}
    for name in COMMANDS:
        beside = [words for words in BESIDE if words.startswith(f"{name} ")]
        parts = [described(words, parser_of(words), 1 + (words != name)) for words in (name, *beside)]
        found[f"commands/{name}"] = "\n".join(parts)
    return found


def parser_of(words: str) -> argparse.ArgumentParser:
    """The parser of a command, of one word or of two."""
    module, function = BESIDE.get(words, (f"rnnreranker.{words}", "make_parser"))
    try:
        made = getattr(importlib.import_module(module), function)
    except AttributeError:
        made = getattr(importlib.import_module(f"{module}.__main__"), function)
    parser: argparse.ArgumentParser = made()
    return parser


def described(words: str, parser: argparse.ArgumentParser, level: int) -> str:
    """What a parser says of itself, under a heading of that level."""
    with wide_terminal():
        usage = parser.format_usage()
        body = parser.format_help().removeprefix(usage).strip()
    body = body.removeprefix(parser.description or "").removesuffix((parser.epilog or "").strip())
    lines = [f"{'#' * level} {words}", "", escaped(parser.description or ""), ""]
    lines += [
        "```text",
        *wrapped(usage.removeprefix("usage: ")),
        "```",
        "",
        f"```{{program}} rnnreranker {words}",
        "```",
        "",
    ]
    for title, flags in groups(body):
        lines += [f"{'#' * (level + 1)} {escaped(heading(title))}", ""]
        for flag, about in flags:
            lines += [f"```{{option}} {flag}", "", escaped(about), "```", ""]
    if parser.epilog:
        lines += examples(parser.epilog, level + 1)
    return "\n".join(lines)


def groups(body: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The groups of flags in the text of a help whose lines are not wrapped: title, and flags with what they do.

    >>> list(groups("output:\\n  --show N  results\\n  --a-long-flag VALUE\\n              of it (default: 1)"))
    [('output', [('--show N', 'results'), ('--a-long-flag VALUE', 'of it (default: 1)')])]
    """
    for block in re.split(r"\n(?=\S)", body.strip()):
        title, *lines = block.splitlines()
        flags: list[tuple[str, str]] = []
        for line in filter(str.strip, lines):
            if line.startswith(" " * 8):
                flags[-1] = (flags[-1][0], f"{flags[-1][1]} {line.strip()}".strip())
            else:
                flag, _, about = line.strip().partition("  ")
                flags.append((flag, about.strip()))
        if flags := [(flag, about) for flag, about in flags if flag != "-h, --help"]:
            yield title.removesuffix(":"), flags


def heading(title: str) -> str:
    """
    >>> heading("options"), heading("work (labels do not depend on it)")
    ('Flags', 'Work (labels do not depend on it)')
    """
    return {"options": "Flags", "positional arguments": "Arguments"}.get(title, title[:1].upper() + title[1:])


def examples(epilog: str, level: int) -> list[str]:
    """The end of a help: what is indented is code, the rest is text."""
    lines = [f"{'#' * level} Examples", ""]
    for code, block in blocks(epilog):
        lines += ["```bash", textwrap.dedent(block), "```", ""] if code else [said(block), ""]
    return lines


def said(text: str) -> str:
    """A line before or after examples, without what its heading says.

    >>> said("examples (a method takes its settings behind a colon):"), said("examples:")
    ('A method takes its settings behind a colon:', '')
    """
    text = re.sub(r"^\((.*)\):$", r"\1:", re.sub(r"^examples:? ?", "", " ".join(text.split())))
    return escaped(text[:1].upper() + text[1:])


def blocks(epilog: str) -> Iterator[tuple[bool, str]]:
    """Runs of lines that are code, or are not."""
    found: list[tuple[bool, list[str]]] = []
    for line in filter(str.strip, epilog.splitlines()):
        code = line.startswith(" ")
        if not found or found[-1][0] != code:
            found.append((code, []))
        found[-1][1].append(line)
    yield from ((code, "\n".join(lines)) for code, lines in found)


def wrapped(usage: str) -> list[str]:
    """A usage in lines of at most 80 characters."""
    return textwrap.wrap(" ".join(usage.split()), 80, subsequent_indent="    ", break_on_hyphens=False)


def escaped(text: str) -> str:
    """Text of a terminal as Markdown: what stands in backticks is code, all else means itself.

    >>> escaped("NAME[:a=1,*] of `x*`")
    'NAME\\\\[:a=1,\\\\*\\\\] of `x*`'
    """
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(part if part[:1] == "`" else re.sub(r"([\\`*_{}\[\]<>#|~$^&])", r"\\\1", part) for part in parts)


@contextlib.contextmanager
def wide_terminal() -> Iterator[None]:
    """While it lasts, argparse wraps no line."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "10000"
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
