"""The papers' figures that our own results can draw: how the size of the context changes quality and time."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from rnnreranker.errors import InputError
from rnnreranker.files import read_text

DRAWN = {
    "context": "{name}: {measure} and time a query by the size of the reranked context "
    "(as in paper 000's figures, for another collection); band: 95% interval",
    "lambda": "{name}: {measure} by the share of the geometric similarity in the mixture; "
    "band: 95% interval, grey: the folds",
}


def figures(folder: Path) -> list[tuple[str, str]]:
    """(caption, SVG) of every context and λ sweep in `folder/*.json`, as the tune command records them.

    The SVG stands by itself inside a page: no prologue, and ids that no other figure has.

    Raises:
        MissingDependencyError: without matplotlib.
        InputError: a file that is not JSON, or a sweep without the values that are drawn.
    """
    from rnnreranker.tune.plots import write_plots

    drawn = []
    for path in sorted(folder.glob("*.json")):
        try:
            found = json.loads(read_text(path, "tuning record"))
            sweeps = {name: rows for name, rows in found.get("sweeps", {}).items() if name in DRAWN}
            with tempfile.TemporaryDirectory() as temporary:
                written = write_plots(temporary, sweeps, found["measure"]) if sweeps else []
                for picture in written:
                    caption = DRAWN[picture.stem].format(name=path.stem, measure=found["measure"])
                    drawn.append((f"{caption}; {found['topics']} topics", _inline(picture, path.stem)))
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path}: not a tuning record ({type(error).__name__} {error}); tune writes them"
            ) from None
    return drawn


def _inline(picture: Path, name: str) -> str:
    """The <svg> element, its ids and the references to them prefixed."""
    text = picture.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    prefix = f"{name}-{picture.stem}-"
    return re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{prefix}", text)
