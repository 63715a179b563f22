"""How Sphinx makes the site: `make site`, which asks nothing of the network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS / "source"), str(DOCS / "site")]
os.environ["HF_HUB_OFFLINE"] = "1"

from rnnreranker import __version__  # noqa: E402

project = "rnnreranker"
author = "the authors of rnnreranker"
version = release = __version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.githubpages",
    "sphinx_copybutton",
    "site_pages",
]
source_suffix = {".md": "myst-nb", ".myst": "myst-nb"}  # .myst: what site_pages writes
exclude_patterns = ["source", "site", "examples"]

myst_heading_anchors = 6
myst_url_schemes = {"http": None, "https": None, "mailto": None, "site": {"url": "{{uri}}"}}
nb_execution_mode = "off"  # they hold what `make notebooks` stored

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"rnnreranker {__version__}"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_last_updated_fmt = None
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
highlight_language = "none"  # a block without a language is what a terminal shows
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
