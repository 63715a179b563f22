"""`python -m tests.faults`: commands with faults at their writes, and what came of them."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent.parent), os.environ.get("PYTHONPATH")]))
sys.path.insert(0, str(HERE.parent))

from rnnreranker.base.files import write_json  # noqa: E402
from rnnreranker.base.record import add_records, made_here  # noqa: E402
from rnnreranker.regress.specs.methods import module_of  # noqa: E402
from tests.faults import calls  # noqa: E402
from tests.faults.cases import FAULTS, LIMIT, Bench, Case  # noqa: E402
from tests.faults.commands import COMMANDS, IMPORTS, make_inputs  # noqa: E402


def main() -> int:
    """Run the cases; 1 where something is wrong with one."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", default=",,".join(COMMANDS), help="names with two commas between them")
    parser.add_argument("--record", metavar="FILE.json")
    parser.add_argument("--list", action="store_true", help="print the writes of every command, and no more")
    parser.add_argument("--only", metavar="FAULT:REPLACING:NUMBER", help="one case of one command, as EIO:0:12")
    args = parser.parse_args()
    names = args.commands.split(",,")
    for room in {COMMANDS[name].room for name in names}:
        for module in (module_of(room), *IMPORTS.get(room, ())):
            importlib.import_module(module)
    place = Path(tempfile.mkdtemp(prefix="faults-"))  # the commands, forked, would remove a TemporaryDirectory at exit
    try:
        return _run(args, names, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _run(args: argparse.Namespace, names: list[str], place: Path) -> int:
    begun = time.perf_counter()
    inputs = place / "inputs"
    if (child := os.fork()) == 0:  # so that this process starts no threads
        code = 1
        try:
            os.environ["RNNRERANKER_HOME"] = str(place / "home")
            make_inputs(inputs, names)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    benches = [Bench(name, inputs, place / f"{number}") for number, name in enumerate(names)]
    if args.list:
        for bench in benches:
            for replacing, writes in bench.writes.items():
                for number, (call, path) in enumerate(writes):
                    print(bench.name, int(replacing), number, call, path)
        return 0
    if args.only:
        fault, replacing, number = args.only.split(":")
        case = benches[0].case(bool(int(replacing)), fault, int(number))
        print(case, case and (case.code, case.seconds), *(case.wrong if case else ()), sep="\n  ")
        return 0
    parts = [place / f"cases{job}.json" for job in range(args.jobs)]
    for job, part in enumerate(parts):
        if os.fork() == 0:
            try:
                share = args.cases // args.jobs + (job < args.cases % args.jobs)
                write_json(part, [vars(case) for case in _cases(benches, share, f"{args.seed}/{job}", job)])
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
    for _ in parts:
        os.wait()
    done = [Case(**case) for part in parts for case in json.loads(part.read_text())]
    wrong = sum(bool(case.wrong) for case in done)
    rows = [
        {
            "command": name,
            **{fault: sum(one.command == name and one.fault == fault for one in done) for fault in FAULTS},
        }
        for name in names
    ]
    outcome = {
        "seed": args.seed,
        "cases": len(done),
        "wrong": wrong,
        "codes": {str(code): sum(one.code == code for one in done) for code in sorted({one.code for one in done})},
        "limit": LIMIT,
        "slowest": max((one.seconds for one in done if one.code), default=0.0),
        "rows": rows,
    }
    print(json.dumps(outcome))
    if args.record:
        seconds = round(time.perf_counter() - begun, 2)
        made = {"command": f"python -m tests.faults --cases {args.cases} --seed {args.seed} --jobs {args.jobs}"}
        add_records(
            args.record,
            [made_here("reliability", "", "faults", outcome, commands=[made | {"seconds": seconds}], seconds=seconds)],
        )
    return int(wrong > 0)


def _cases(benches: list[Bench], count: int, seed: str, job: int) -> list[Case]:
    rng = random.Random(seed)
    done: list[Case] = []
    while len(done) < count:
        (bench,) = rng.choices(benches, [COMMANDS[bench.name].share for bench in benches])
        fault, replacing = rng.choice(FAULTS), rng.choice(sorted(bench.writes))
        case = bench.case(replacing, fault, rng.randrange(len(bench.writes[replacing])), job)
        if case is None:
            continue
        done.append(case)
        if case.wrong:
            print(case, *case.wrong, sep="\n  ", flush=True)
        if len(done) % 10 == 0:
            print(f"{len(done)} of {count}", file=sys.stderr, flush=True)
    return done


if __name__ == "__main__":
    if not calls.available():
        sys.exit("faults are put into commands on Linux on x86-64 alone, from version 5.19 on")
    sys.exit(main())
