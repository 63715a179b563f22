"""`python -m tests.mutations` from the checkout: the long form, and its record."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from mutations.long_form import main

    sys.exit(main())
