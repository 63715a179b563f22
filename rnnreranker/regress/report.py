"""Report pages: a spec, its plan and its results through a template."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.pages import render
from rnnreranker.regress.plan import make_plan
from rnnreranker.regress.results import Result
from rnnreranker.regress.spec import Spec

PASTE_FOLDER = Path("runs")  # where the commands of a page put their files


def page(spec: Spec, results: list[Result]) -> str:
    """The Markdown page of a spec: what it is, measured values, how to read them, commands to paste.

    Args:
        spec: what was run.
        results: what was measured, one section each.
    """
    return render(
        "regress",
        "page.md.j2",
        spec=spec,
        results=results,
        plan=make_plan(spec, PASTE_FOLDER / spec.name),
    )
