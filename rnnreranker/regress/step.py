"""`python -m rnnreranker.regress.step MODULE ARGV…`: one command of a plan, in a process of its own.

The same as `python -m rnnreranker.MODULE ARGV…`, but what cannot be had here (data, Java, a package) has an exit code
of its own, so that the runner can tell it from a mistake.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from rnnreranker import command
from rnnreranker.errors import MissingDependencyError, UnavailableError
from rnnreranker.regress.source_code import module_of

UNAVAILABLE = 75  # exit code: EX_TEMPFAIL of sysexits.h


def main(argv: Sequence[str]) -> int:
    """Run the command of a module with its arguments; its exit code."""
    try:
        code: int = importlib.import_module(module_of(argv[0])).main(argv[1:])
    except (UnavailableError, MissingDependencyError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return UNAVAILABLE
    return code


if __name__ == "__main__":
    raise SystemExit(command.run(main))
