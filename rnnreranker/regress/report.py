"""Report pages: a spec, its plan and its results through a template."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.files import write_atomically
from rnnreranker.regress.plan import make_plan
from rnnreranker.regress.results import Result
from rnnreranker.regress.spec import Spec

if TYPE_CHECKING:
    import jinja2

PASTE_FOLDER = Path("runs")  # where the commands of a page put their files


def page(spec: Spec, results: list[Result]) -> str:
    """The Markdown page of a spec: what it is, measured values, how to read them, commands to paste.

    Args:
        spec: what was run.
        results: what was measured, one section each.
    """
    return _template("page.md.j2").render(
        spec=spec,
        results=results,
        plan=make_plan(spec, PASTE_FOLDER / spec.name),
    )


def overview(entries: list[tuple[Spec, list[Result]]]) -> str:
    """The Markdown page that lists all specs with their newest result."""
    return _template("overview.md.j2").render(entries=entries)


def write_page(path: Path, text: str) -> None:
    """Write a page atomically, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as stream:
        stream.write(text.encode())


def _template(name: str) -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rnnreranker.regress"),
        autoescape=jinja2.select_autoescape(("html", "html.j2")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)
