"""What other libraries print of their own accord, kept out of pipes and log files."""

from __future__ import annotations

import logging
import os
import sys
import warnings

_COMMANDS: list[str] = []  # of this package that this process runs


def is_command() -> bool:
    """Whether this process is a command of this package, so that nobody else uses what it loads."""
    return bool(_COMMANDS)


def quiet_others() -> None:
    """Warnings and progress bars of other libraries are for a terminal: no pipe or log file gets them."""
    _COMMANDS.append(sys.argv[0])
    on_terminal = sys.stderr.isatty()
    level = logging.WARNING if on_terminal else logging.ERROR
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    if not on_terminal:
        os.environ.setdefault("TQDM_DISABLE", "1")  # read by tqdm, in processes that we start too
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            os.environ.setdefault("PYTHONWARNINGS", "ignore")
