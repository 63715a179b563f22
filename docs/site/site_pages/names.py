"""A page for each public name of Python, from its docstring; of settings, a table of their limits besides."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from page_data.method_table import settings_of

from rnnreranker.base.settings import Params
from site_pages.commands import escaped

MODULES = {
    "python": (
        "rnnreranker",
        "Python API",
        "Everything that the commands do. `from rnnreranker import …`: a name is loaded when it is first asked for.",
    ),
    "plugins": (
        "rnnreranker.plugins",
        "Python API for methods of your own",
        "What a method, a part of an index or a model of another package derives from, and how it declares settings: "
        "see [a method of your own](../methods.md#a-method-of-your-own).",
    ),
}


def pages() -> dict[str, str]:
    """The pages in Markdown, by their names without an ending."""
    found = {}
    for folder, (module, title, about) in MODULES.items():
        public = importlib.import_module(module)
        names = {name: getattr(public, name) for name in public.__all__}
        rows = "".join(
            f"| [`{name}`]({folder}/{module}.{name}.myst) | {kind(one)} | {first_sentence(one)} |\n"
            for name, one in names.items()
        )
        toctree = "\n".join(f"{name} <{folder}/{module}.{name}>" for name in names)
        found[folder] = (
            f"# {title}\n\n{about}\n\n| name | | what it is |\n|---|---|---|\n{rows}\n"
            f"```{{toctree}}\n:hidden:\n\n{toctree}\n```\n"
        )
        for name, one in names.items():
            found[f"{folder}/{module}.{name}"] = page(module, name, one)
    return found


def kind(one: Any) -> str:
    """
    >>> kind(ValueError), kind(int), kind(kind)
    ('exception', 'class', 'function')
    """
    if not inspect.isclass(one):
        return "function"
    return "exception" if issubclass(one, Exception) else "class"


def first_sentence(one: Any) -> str:
    """The first line of a docstring, as Markdown of one cell."""
    return escaped((inspect.getdoc(one) or "").split("\n\n")[0].split("\n")[0])


def page(module: str, name: str, one: Any) -> str:
    """The page of a name."""
    members = "" if kind(one) == "function" else "   :members:\n   :exclude-members: Params\n"
    text = f"# {name}\n\n```{{eval-rst}}\n.. auto{kind(one)}:: {module}.{name}\n{members}```\n"
    if not (inspect.isclass(one) and issubclass(one, Params) and settings_of(one)):
        return text
    rows = "".join(
        f"| `{setting}` | {escaped(default)} | {escaped(limits)} | {escaped(about)} |\n"
        for setting, default, limits, about in settings_of(one)
    )
    return f"{text}\n## Settings\n\n| setting | default | takes | meaning |\n|---|---|---|---|\n{rows}"
