"""`index --check`: every file of an index read from end to end, and compared with what was written."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.files.checksums import AGAIN, DESCRIPTION, DOCIDS, TEXTS, check_whole, names_in
from rnnreranker.base.process.phases import phase
from rnnreranker.parts.description import describe

SHOWN = 3  # damaged files that an error names


@phase("checking the index")
def check_index(index: Path) -> str:
    """What there is to say of an index whose files are all those that were written.

    Args:
        index: a folder made by `python -m rnnreranker.index`.

    Raises:
        InputError: files that are gone or others, a folder that is no such index.
    """
    if not index.is_dir():
        raise InputError(f"{index}: no such folder; expected an index made by python -m rnnreranker.index")
    described = describe(index)
    if not described:
        raise InputError(
            f"{index}: no {DESCRIPTION} in it, so nothing says what its files should be; expected an index made by "
            "python -m rnnreranker.index"
        )
    groups = described["files"]
    if without := [name for name in (DOCIDS, TEXTS, *described["parts"]) if name not in groups]:
        raise InputError(f"{index / DESCRIPTION}: no checksums of {', '.join(without)}; {AGAIN}")
    if wrong := check_whole(index, groups):
        more = f"; and {len(wrong) - SHOWN} more files" if len(wrong) > SHOWN else ""
        raise InputError(f"{'; '.join(wrong[:SHOWN])}{more}; {AGAIN}")
    names = {name for group in groups.values() for name in group}
    size = sum(of_file["bytes"] for group in groups.values() for of_file in group.values())
    said = f"{index}: {len(names)} files ({size / 1e6:.1f} MB) are those that were written"
    if others := sorted(names_in(index) - names):
        said += f"; not described: {', '.join(others[:SHOWN])}{', …' if len(others) > SHOWN else ''}"
    return said
