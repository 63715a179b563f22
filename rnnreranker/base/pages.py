"""Pages: filled templates, HTML escaped, and files written whole."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.files import write_atomically

if TYPE_CHECKING:
    from jinja2 import Environment


def render(where: str | Path, name: str, **values: Any) -> str:
    """The filled template `name` of a folder of the package, as `regress`, or of a path, with all its values.

    A template may include those of the base folder, as `base.css`.
    """
    return _environment(where).get_template(name).render(values)


@functools.cache
def _environment(where: str | Path) -> Environment:
    import jinja2

    own = jinja2.FileSystemLoader(where) if isinstance(where, Path) else jinja2.PackageLoader(f"rnnreranker.{where}")
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([own, jinja2.PackageLoader("rnnreranker.base")]),
        autoescape=jinja2.select_autoescape(("html", "html.j2")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}  # of values within pages
    return environment


def write_page(path: Path, text: str) -> None:
    """Write a page atomically and make its folder; InputError: the folder or the page cannot be written."""
    with contextlib.suppress(OSError):  # the writer says what is wrong with the folder
        path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as stream:
        stream.write(text.encode())
