"""What the HTML of Sphinx and of the theme lacks for those who hear it."""

from __future__ import annotations

import re
from typing import Any

CAPTION = re.compile(r'(<p class="caption" role="heading")(?! aria-level)')
SIGNATURE = re.compile(r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>")
LINE = re.compile(r"<(/?)dd>")


def complete(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """What Sphinx calls with what a page is made of; the theme has added its part by then."""
    for part in ("body", "furo_navigation_tree"):
        if part in context:
            context[part] = completed(context[part])


def completed(html: str) -> str:
    """Captions with a level, and parameters that stand a line each as text: a list of them has no terms.

    >>> completed('<p class="caption" role="heading">Start</p>')
    '<p class="caption" role="heading" aria-level="2">Start</p>'
    >>> completed("<dl>\\n<dd>k</dd>\\n<dd>tau</dd>\\n</dl>")
    '<span class="parameters"><span>k</span>\\n<span>tau</span>\\n</span>'
    """
    html = CAPTION.sub(r'\1 aria-level="2"', html)
    return SIGNATURE.sub(_parameters, html)


def _parameters(found: re.Match[str]) -> str:
    lines = LINE.sub(r"<\1span>", found[1])
    return f'<span class="parameters">{lines}</span>'
