"""Commands that a signal reaches at many moments: exit code, what they say, seconds to their end, what they leave.

`python -m tests.interruptions --record FILE.json` in the checkout tries all of them, in an hour, and puts
what it found on record; `--only search` one alone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rnnreranker.base.process import interrupts

ROOT = Path(__file__).resolve().parent.parent
AT_MOST = 1.0  # seconds from a signal to the end of all processes
MANY = "--topics many.tsv --qrels many.qrels"
RUN = f"--run many.txt {MANY} --index pydoc"
TO_ITS_END = "index, to its end"  # of few documents: interrupted until it has ended
SIXTY = ("index", "labels", "train", "tune")  # with as many signals as the search has, over as many seconds
COMMANDS = {  # each takes longer than the moments at which it is interrupted
    "search": "search --index pydoc --topics many.tsv --retriever bm25+dense --output run.txt",
    "index": "index --documents pydoc --parts dense,bm25 --output index",
    "index, to its end": "index --documents few.tsv --parts dense,neighbours --output index",
    "labels": f"labels {RUN} --output other.parquet --backend loky --jobs 2",
    "train": "train --labels labels.parquet --index pydoc --topics pydoc/train --encoder minilm --epochs 100 "
    "--output encoder",
    "tune": "tune --index pydoc --topics pydoc/train --qrels pydoc/train --trials 5000 --output params.yaml",
    "regress": "regress pydoc --only bm25-rnn --only dense-rnn --output work",
    "study": "study --index pydoc --topics pydoc/train --qrels pydoc/train --test-topics pydoc --test-qrels pydoc "
    "--jobs 2 --work work --output study.json",
}


@dataclass(frozen=True)
class End:
    """How a command ended that was sent a signal.

    Attributes:
        moment: seconds from its start to the signal; `signal`: its number.
        code: exit code, negative for a process that a signal ended; `seconds`: from the signal to it.
        last: seconds from the signal to the end of the last process that it had started, at most 5.
        said: standard error.
        left: what it left in its folder.
    """

    moment: float
    signal: int
    code: int
    seconds: float
    last: float
    said: str
    left: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """What became of it: as it should, or in which way not."""
        if self.code == 0:
            return "ended before"
        if self.code == -self.signal and not self.said:
            return "before Python"  # the system's own way: 128 + number in a shell, nothing begun
        if "Traceback" in self.said or "Fatal Python error" in self.said:
            return "Python's traceback"
        if (self.code, self.said.splitlines()[-1:]) != (128 + self.signal, [interrupts.SAID]):
            return "another end"
        unfinished = any(".tmp" in name or name.startswith(".") or f"{name}.partial" in self.left for name in self.left)
        if self.said.count(interrupts.SAID) > 1 or unfinished:
            return "said twice or half-written"
        return "late" if max(self.seconds, self.last) > AT_MOST else "as promised"


def interrupted(argv: Sequence[str], folder: Path, moment: float, number: int, environment: dict[str, str]) -> End:
    """The end of a command that is sent a signal: SIGINT as Ctrl-C, to all its processes, SIGTERM to itself alone."""
    before = {path.name for path in folder.iterdir()}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(
            argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        time.sleep(max(0.0, moment - (time.perf_counter() - started)))
        sent = time.perf_counter()
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        code = process.wait(timeout=600)
        ended = last = time.perf_counter()
        while session_of(process.pid) and last - sent < 5:
            time.sleep(0.005)
            last = time.perf_counter()
        for pid in session_of(process.pid):
            os.kill(pid, signal.SIGKILL)
        err.seek(0)
        said = err.read().decode(errors="replace")
    left = sorted({path.name for path in folder.iterdir()} - before)
    return End(round(sent - started, 4), number, code, round(ended - sent, 3), round(last - sent, 3), said, left)


def session_of(leader: int) -> list[int]:
    """The processes of a session that have not ended (Linux; elsewhere none are seen)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(path.parent.name))
    return found


def fresh(**more: str) -> dict[str, str]:
    """The environment of a command: this checkout before an installed package, what Python compiled kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def python(text: str) -> list[str]:
    return [sys.executable, "-m", *f"rnnreranker.{text}".split()]


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """A folder with what the commands read."""
    from rnnreranker.data.topics import load_topics

    copies = [f"-{copy}" for copy in range(20)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        topics = [f"{qid}{copy}\t{text}\n" for copy in copies for qid, text in load_topics("pydoc/train").items()]
        (folder / "many.tsv").write_text("".join(topics))
        judged = (ROOT / "rnnreranker/data/pydoc_files/train-qrels.txt").read_text().splitlines()
        search = "search --index pydoc --topics pydoc/train --retriever dense --rerank none --output first.txt"
        subprocess.run(python(search), cwd=folder, env=fresh(), check=True, capture_output=True)
        for name, lines in (("many.qrels", judged), ("many.txt", (folder / "first.txt").read_text().splitlines())):
            rows = [line.split(maxsplit=1) for line in lines]
            (folder / name).write_text("".join(f"{qid}{copy} {rest}\n" for copy in copies for qid, rest in rows))
        labels = "labels --run first.txt --qrels pydoc/train --topics pydoc/train --index pydoc --output labels.parquet"
        subprocess.run(python(labels), cwd=folder, env=fresh(), check=True, capture_output=True)
        texts = (f"d{number}\t{text.split(chr(9))[1]}" for number, text in enumerate(topics[:40]))
        (folder / "few.tsv").write_text("".join(texts))
        yield folder


def seconds_of(name: str, folder: Path) -> float:
    """How long a command takes when nothing interrupts it; what it makes is removed."""
    import shutil

    begun, kept = time.perf_counter(), {path.name for path in folder.iterdir()}
    subprocess.run(python(COMMANDS[name]), cwd=folder, env=fresh(), check=True, capture_output=True)
    for path in folder.iterdir():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return time.perf_counter() - begun


def ends(name: str, moments: Iterable[float], numbers: Sequence[int], folder: Path) -> list[End]:
    """How a command of `COMMANDS` ended at each moment, the signals taking turns; what it left is removed."""
    import shutil

    found = []
    for count, moment in enumerate(moments):
        kept = {path.name for path in folder.iterdir()}
        found.append(interrupted(python(COMMANDS[name]), folder, moment, numbers[count % len(numbers)], fresh()))
        for path in folder.iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        one = found[-1]
        print(f"{name} {one.moment:.3f} s {one.signal}: {one.kind}, {one.seconds:.2f} {one.last:.2f} s", flush=True)
        if one.kind not in ("as promised", "before Python", "ended before"):
            print(f"    {one.code} {one.left} {one.said[-600:]}", flush=True)
    return found


def summary(found: Sequence[End]) -> dict[str, Any]:
    kinds = sorted({one.kind for one in found})
    seconds = [max(one.seconds, one.last) for one in found]
    return {
        "kinds": {kind: sum(one.kind == kind for one in found) for kind in kinds},
        "median": round(statistics.median(seconds), 3),
        "most": max(seconds),
        "from": found[0].moment,
        "to": found[-1].moment,
        "ends": [{key: value for key, value in asdict(one).items() if key != "said"} for one in found],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interruptions", description=__doc__)
    parser.add_argument("--record", metavar="FILE", help="records to add what is found to")
    parser.add_argument("--only", action="append", choices=["first instants", *COMMANDS])
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let what they put in the background ignore it
    begun, load = time.perf_counter(), os.getloadavg()[0]
    outcome: dict[str, Any] = {}
    with place() as folder:
        for name in args.only or ["first instants", *COMMANDS]:
            if name == "first instants":
                found = ends("search", (count * 0.0025 for count in range(60)), (signal.SIGINT,), folder)
            elif name == "search":
                found = ends("search", (count * 6 / 59 for count in range(60)), (signal.SIGINT,), folder)
                outcome["search, SIGTERM"] = summary(
                    ends("search", (0.3 + count * 6 / 20 for count in range(20)), (signal.SIGTERM,), folder)
                )
            elif name == TO_ITS_END:
                takes = seconds_of(name, folder)
                moments = (takes * (0.5 + 0.55 * count / 59) for count in range(60))
                found = ends(name, moments, (signal.SIGINT, signal.SIGTERM), folder)
            elif name in SIXTY:
                moments = (0.2 + count * 6 / 59 for count in range(60))
                found = ends(name, moments, (signal.SIGINT, signal.SIGTERM), folder)
            else:
                signals = (signal.SIGINT, signal.SIGTERM)
                found = ends(name, (0.2 + count * 0.9 for count in range(12)), signals, folder)
            outcome[name] = summary(found)
    if args.record:
        from rnnreranker.base.record import add_records, made_here

        seconds = round(time.perf_counter() - begun, 2)
        only = "".join(f" --only {shlex.quote(name)}" for name in args.only or [])
        command = {"command": f"python -m tests.interruptions{only}", "seconds": seconds}
        outcome = {"load": round(load, 2), "at_most": AT_MOST, "commands": outcome}
        of = (
            f" of {', '.join(args.only)}" if args.only and "search" not in args.only else ""
        )  # a record beside the other
        made = made_here("reliability", "", f"interruptions{of}", outcome, commands=[command], seconds=seconds)
        add_records(Path(args.record), [made])
    for name, one in outcome.get("commands", outcome).items():
        print(name, one["kinds"], one["median"], one["most"])
    good = {"as promised", "before Python"}
    if TO_ITS_END in outcome.get("commands", outcome):
        good.add("ended before")
    return int(any(set(one["kinds"]) - good for one in outcome.get("commands", outcome).values()))


if __name__ == "__main__":
    raise SystemExit(main())
