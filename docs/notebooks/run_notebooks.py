"""Executes the notebooks of this folder in place: `python docs/notebooks/run_notebooks.py [NAME …]`, `make notebooks`.

What is stored depends on code, package and data alone: no times, no state of a machine, the same ids of cells.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
QUIET = ["--IPKernelApp.log_level=ERROR"]  # no word on connections
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


def executed(notebook: Path) -> nbformat.NotebookNode:
    """A notebook with the outputs of its cells, run in a temporary folder, with the package of this checkout.

    Args:
        notebook: an .ipynb file, which stays as it is.

    Raises:
        CellExecutionError: a cell failed.
        ValueError: a cell wrote to stderr (a warning, a progress bar), with its text.
    """
    made = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "IPYTHONDIR": folder,  # no settings of one's own
            "HF_HUB_OFFLINE": "1",
            "PYTHONWARNINGS": "ignore:IProgress not found",  # of tqdm without ipywidgets; no bar is drawn
        }
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(made, timeout=600, record_timing=False, resources=resources, extra_arguments=QUIET)
        client.execute(env=environment)
    for number, cell in enumerate(made.cells, 1):
        cell.id, cell.metadata = f"cell-{number:02}", nbformat.NotebookNode()
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise ValueError(f"{notebook.name}: cell {number} wrote to stderr: {output.text.strip()}")
    made.metadata = nbformat.from_dict(METADATA)
    return made


def main(names: list[str]) -> None:
    """Execute the notebooks of these names, all without any, and store their outputs."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(executed(path), path)
            print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
