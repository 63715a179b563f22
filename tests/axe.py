"""axe-core in a page that headless Chromium shows: what keeps people from reading or using it."""

from __future__ import annotations

from importlib.resources import files

from browser import Browser

RUN = (
    "axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations"
    ".filter(one => one.impact === 'serious' || one.impact === 'critical')"
    ".flatMap(one => one.nodes.map(node => "
    "`${one.id} (${one.impact}): ${node.target.join(' ')}: ${node.failureSummary}`)))"
)


def violations(browser: Browser, address: str, width: int) -> list[str]:
    """What axe-core finds of serious or critical impact in a page, a line for each element: rule, element, reason.

    Args:
        address: of any page, with a fragment where it should show something opened.
        width: of the window; below 600 that of a telephone.
    """
    browser.show(address, width, ready="document.readyState === 'complete'")
    browser.js(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    return [" ".join(line.split()) for line in browser.js(RUN)]
