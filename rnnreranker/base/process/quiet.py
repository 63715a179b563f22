"""Output of other libraries stays out of pipes and log files; our own lines always appear."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings

from rnnreranker.base.errors import DataWarning

_COMMANDS: list[str] = []  # of this package that this process runs
_USUAL = warnings.formatwarning


def is_command() -> bool:
    """Whether this process is a command of this package, so that no other code uses its libraries."""
    return bool(_COMMANDS)


def quiet_others() -> None:
    """Prepare stdout, stderr, loggers and warnings of a command.

    A pipe or a log file gets no warnings and progress bars of other libraries. A character that the stream cannot
    encode becomes an escape.
    """
    _COMMANDS.append(sys.argv[0])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    on_terminal = sys.stderr.isatty()
    level = logging.WARNING if on_terminal else logging.ERROR
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("rnnreranker").setLevel(logging.WARNING)
    if not on_terminal:
        os.environ.setdefault("TQDM_DISABLE", "1")  # read by tqdm, in processes that we start too
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            os.environ.setdefault("PYTHONWARNINGS", "ignore")
    show_notices()


def show_notices() -> None:
    """Show each `DataWarning` in one line on stderr, whatever other warnings do."""
    warnings.filterwarnings("default", category=DataWarning)
    warnings.formatwarning = _one_line


def _one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    if issubclass(category, DataWarning):
        return f"warning: {message}\n"
    return _USUAL(message, category, filename, lineno, line)
