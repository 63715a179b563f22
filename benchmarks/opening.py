"""Opening vectors with their docids: the first time, which makes a table of docids, and later, in fresh processes.

    python benchmarks/opening.py [--sizes 1000000,10000000] [--folder DIR] [--record FILE.json]

Vectors are float16 of 384 numbers in a sparse file, so that 138 million fit a small disk. Memory is what a process
holds beyond its imports and beyond mapped files.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import options, report

DIMENSION = 384


def make(folder: Path, documents: int) -> Path:
    """A file of vectors, all 0, and one of docids of seven to nine digits."""
    import numpy as np

    path = folder / f"{documents}.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(documents, DIMENSION))
    with path.with_suffix(".ids").open("w", encoding="utf-8") as ids:
        for first in range(0, documents, 1_000_000):
            ids.write("".join(f"{number}\n" for number in range(first, min(first + 1_000_000, documents))))
    return path


def opened(path: str) -> dict[str, float]:
    """Seconds and megabytes of opening vectors and of looking up 200,000 docids in this process."""
    import numpy as np

    from rnnreranker import open_vectors

    before, begun = anonymous(), time.perf_counter()
    source = open_vectors(path)
    seconds = time.perf_counter() - begun
    held = anonymous() - before
    rng = np.random.default_rng(0)
    docids = [str(number) for number in rng.integers(0, len(source.docids), 200_000)]
    begun = time.perf_counter()
    rows = source.rows(docids)
    return {"open_s": seconds, "open_MB": held, "look_up_s": time.perf_counter() - begun, "rows": float(len(rows))}


def anonymous() -> float:
    """Megabytes of this process that no file holds."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1000
    raise OSError("no RssAnon in /proc/self/status: Linux 4.5 or later is needed")


def in_process(path: Path, home: str) -> dict[str, float]:
    environment = os.environ | {"RNNRERANKER_HOME": home}
    done = subprocess.run([sys.executable, __file__, "--open", str(path)], env=environment, check=True, stdout=-1)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--sizes", default="1000000,10000000")
    parser.add_argument("--folder", help="for the files (default: a temporary one)")
    parser.add_argument("--open", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.open:
        print(json.dumps(opened(args.open)))
        return
    rows: list[dict[str, Any]] = []
    begun = time.perf_counter()
    for size in map(int, args.sizes.split(",")):
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            path = make(Path(folder), size)
            first, later = in_process(path, folder), min((in_process(path, folder) for _ in range(3)), key=seconds)
        rows.append({"documents": size, "first_s": first["open_s"], **later})
        print(rows[-1], file=sys.stderr, flush=True)
    report("opening", rows, args.record, begun)


def seconds(one: dict[str, float]) -> float:
    return one["open_s"]


if __name__ == "__main__":
    main()
