"""Pages: filled templates, HTML escaped, and matplotlib figures; files are written whole."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.files import write_atomically

if TYPE_CHECKING:
    from jinja2 import Environment


import io
import re
from typing import TYPE_CHECKING


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


FONT = "font-family: 'DejaVu Sans', sans-serif"  # as matplotlib says it beside each text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as SVG and return the path; equal figures give equal bytes.

    Texts stay texts and coordinates have two decimals: a quarter of the size.
    """
    import matplotlib

    content = io.StringIO()
    style: Any = {"svg.hashsalt": path.name, "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"]}
    with matplotlib.rc_context(style):
        figure.savefig(content, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    with write_atomically(path) as stream:
        stream.write(_shortened(content.getvalue()).encode())
    return path


def _shortened(svg: str) -> str:
    """An SVG without indentation and empty attributes, with one font rule, two decimals, and a group for marks of one
    style.
    """
    svg = svg[svg.index("<svg") :].replace(f"; {FONT}", "").replace('<style type="text/css">', f"<style>text{{{FONT}}}")
    svg = re.sub(r'<g id="[^"]*"', "<g", re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", svg))
    attribute, number = re.compile(r'="[^"]*"'), re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
    alike = re.compile(r'(<use [^>]* (style="[^"]*")/>\n)(?:<use [^>]* \2/>\n)+')

    def shorter(match: re.Match[str]) -> str:
        return number.sub(lambda one: f"{round(float(one[0]), 2):g}", " ".join(match[0].split()))

    def grouped(match: re.Match[str]) -> str:
        return f"<g {match[2]}>\n{match[0].replace(f' {match[2]}', '')}</g>\n"

    return alike.sub(grouped, re.sub(r"\n\s+", "\n", attribute.sub(shorter, svg)))


def new_figure() -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 3.6), layout="constrained")
