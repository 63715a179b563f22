"""Pages: filled templates, HTML escaped, and matplotlib figures; files are written whole."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.files import write_atomically

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure


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


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as SVG, whose texts stay texts, and return the path; equal figures give equal bytes."""
    import matplotlib

    content = io.StringIO()
    style: Any = {"svg.hashsalt": path.name, "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"]}
    with matplotlib.rc_context(style):
        figure.savefig(content, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = content.getvalue()
    with write_atomically(path) as stream:
        stream.write(re.sub(r"\n\s+", "\n", svg[svg.index("<svg") :]).encode())
    return path


def new_figure() -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 3.6), layout="constrained")
