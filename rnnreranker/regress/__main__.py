"""`python -m rnnreranker.regress NAME…`: run specs, compare with what is on record, write pages."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import SHOWN, nearest, refuse
from rnnreranker.base.settings import Request, setting

if TYPE_CHECKING:
    from rnnreranker.base.record import Record
    from rnnreranker.regress.plans.plan import Plan, State
    from rnnreranker.regress.specs.entries import QuerySet, Spec

SOURCES = Path("docs", "source")  # of pages of prose, beside the folder of specs
CHANGED = 1  # exit code: a value beyond its tolerance, or an error in a condition


@dataclass(frozen=True)
class RegressRequest(Request):
    """The request of the command; names: specs, query sets, papers or YAML files."""

    names: Sequence[str] = ()
    list: bool = setting(False, "print specs, their query sets, and which tables of papers these are of")
    dry_run: bool = setting(False, "print the commands, run nothing")
    only: Sequence[str] = setting(
        (), "run one condition and those it needs, or one study, tuning, …; may be given again", many=True, metavar="ID"
    )
    record: bool = setting(False, "put the measured values on record in the specs folder")
    docs: bool = setting(False, "write all pages from what is on record")
    docs_folder: str = setting("docs", "where the pages go", metavar="DIR")
    runs: str | None = setting(
        None,
        "measure published run files in DIR in place of retrieving, or rerank them where a spec does",
        metavar="DIR",
    )
    matrix: bool = setting(False, "count the papers' published cells by state")
    table: str | None = setting(None, "of a paper: only this table", metavar="N")
    keep: bool = setting(False, "keep large indexes and candidates that no later step of the plan reads")
    fresh: bool = setting(
        False, "take every step again, also those whose output is current (after a change of the program)"
    )
    jobs: int = setting(
        1, "steps at a time, where they do not need each other; then each prints at its end", at_least=1
    )
    specs: str | None = setting(None, "folder of specs (default: the checkout's, else the package's)", metavar="DIR")
    output: str | None = setting(None, "for indexes, models and runs (default: a cache)", metavar="DIR")


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; returns the exit code."""
    args = command.request(make_parser().parse_args(argv), RegressRequest)
    from rnnreranker.regress.papers import listing
    from rnnreranker.regress.specs.spec import find_spec, specs_folder

    folder = specs_folder(args.specs)
    if args.list:
        listing.print_list(folder)
        return 0
    papers = _check(args, folder)
    asked = [] if papers else [find_spec(name, folder, data=True) for name in args.names]
    code = 0
    if args.runs and all(entry.ways for spec, _ in asked for entry in spec.conditions.values()):
        code = _published(folder, args, asked)
    elif papers and args.dry_run:
        for plan in listing.paper_plans(folder, args.names, args.table):
            command.put("\n".join(plan.lines()))
    elif args.matrix or papers:
        listing.print_matrix(folder, args.names, args.table, cells=not args.matrix)
    elif args.names:
        code = _specs(folder, args, asked)
    if args.docs and not args.dry_run:
        _docs(folder, Path(args.docs_folder))
    return code


def _check(args: RegressRequest, folder: Path) -> bool:
    """Refuse arguments that do not go together; returns whether the names are papers."""
    from rnnreranker.regress.papers.paper import paper_names
    from rnnreranker.regress.specs.spec import YAML, query_set_names, spec_names

    papers = paper_names(folder)
    known = dict.fromkeys([*spec_names(folder), *query_set_names(folder), *papers])
    unknown = [name for name in args.names if name not in known and not (name.endswith(YAML) and Path(name).is_file())]
    named = [name for name in args.names if name in papers]
    said = f"no such spec, query set or paper in {folder}"
    refuse(
        *((True, f"{name}: {said}; {nearest(name, known)}") for name in unknown),
        (
            named and len(named) < len(args.names) and not args.runs,
            f"{', '.join(named)} with specs: papers are printed, specs are run; name one kind at a time",
        ),
        (args.table and not named, f"--table {args.table}: is of a paper; name one, as paper-000"),
        (args.only and len(args.names) > 1, f"--only with {len(args.names)} names: name the one spec that has it"),
        (
            args.only and not args.runs and (named or args.matrix or not args.names),
            f"--only {', '.join(args.only)}: is of a spec; name the one that has it, without --matrix",
        ),
        (
            not (args.names or args.runs or args.matrix or (args.docs and not args.dry_run)),
            f"no spec named: give one or more, or --list; {nearest('', known)}",
        ),
    )
    return bool(named)


def _published(folder: Path, args: RegressRequest, asked: Sequence[tuple[Spec, Sequence[QuerySet]]]) -> int:
    """Measure published run files; 1 if one cannot be measured, 2 if none has these names."""
    from rnnreranker.base.command import print_table
    from rnnreranker.regress.pages.published import run_files
    from rnnreranker.regress.papers.listing import print_matrix
    from rnnreranker.regress.papers.matrix import Matrix
    from rnnreranker.regress.records import put_on_record

    refuse((args.dry_run, f"--dry-run: run files of --runs {args.runs} are measured without commands; leave it out"))
    matrix, named = Matrix(folder), {one.id: (spec, one) for spec, several in asked for one in several}
    sets, names = (named, ()) if named else (matrix.sets, args.names)
    records, errors = run_files(sets.values(), matrix.cells, names, Path(str(args.runs)), args.only)
    rows = [
        [record.outcome["query_set"], record.name, protocol, name, f"{number:.4f}"]
        for record in records
        for protocol, values in record.outcome["values"].items()
        for name, number in values.items()
    ]
    if rows:
        print_table(["query set", "condition", "protocol", "measure", "value"], rows)
    if not records:
        return CHANGED if errors else command.BAD_INPUT
    if args.record:
        put_on_record(folder, records)
    print_matrix(folder, args.names, args.table, bool(args.table), () if args.record else records)
    return CHANGED if errors else 0


def _specs(folder: Path, args: RegressRequest, asked: Sequence[tuple[Spec, Sequence[QuerySet]]]) -> int:
    """Run specs, or print their plans."""
    from rnnreranker.base.files import cache_home
    from rnnreranker.regress.pages.published import first_stages
    from rnnreranker.regress.plans.maker import chosen_plan
    from rnnreranker.regress.plans.plan import PASTE_FOLDER

    work = PASTE_FOLDER if args.dry_run else Path(args.output) if args.output else cache_home() / "regress"
    published = first_stages(Path(args.runs), asked) if args.runs else {}
    how: dict[str, Any] = {"published": published, "keep": args.keep}
    plans = [chosen_plan(spec, query_sets, args.only, work, **how) for spec, query_sets in asked]
    if args.dry_run:
        command.put("\n".join(line for plan in plans for line in plan.lines()))
        return 0
    codes = [_run(plan, folder, args) for plan in plans]
    return CHANGED if CHANGED in codes else min(codes)


def _run(plan: Plan, folder: Path, args: RegressRequest) -> int:
    """Run a plan and print its values; 2 if nothing can be run, 1 if a step failed or a value changed."""
    from rnnreranker.base.record import add_records
    from rnnreranker.regress.plans.runner import run
    from rnnreranker.regress.records import put_on_record

    records, states = run(plan, folder, args.fresh, args.jobs)
    _print_values(plan, records, states)
    if records:
        add_records(plan.folder / plan.spec.name / "records.json", records)
        if args.record:
            put_on_record(folder, records)
    missing: dict[State, dict[str, None]] = {}
    for (_, name), state in states.items():
        if state.kind in ("skipped", "error"):
            missing.setdefault(state, {})[name] = None
    for state, names in missing.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        command.say(f"{state} ({', '.join([*names][:SHOWN])}{more})")
    kinds = {state.kind for state in states.values()}
    if not records and "error" not in kinds:
        command.say(f"{plan.spec.name}: nothing can be run here; --dry-run prints the commands for elsewhere")
        return command.BAD_INPUT
    if any(state.kind == "skipped" and name in args.only for (_, name), state in states.items()):
        return command.BAD_INPUT
    return CHANGED if "error" in kinds or ("changed" in kinds and not args.record) else 0


def _print_values(plan: Plan, records: Sequence[Record], states: Mapping[tuple[str, str], State]) -> None:
    from rnnreranker.base.command import print_table
    from rnnreranker.regress.records import is_run

    for query_set in plan.query_sets:
        measures, rows = plan.spec.measures_of(query_set), []
        for record in (one for one in records if is_run(one, query_set.id)):
            kinds = record.outcome.get("kinds", {})
            of_kinds = [kinds.get(kind, {}).get(measures[0]) for kind in query_set.kinds]
            for protocol, scores in record.outcome["values"].items():
                cells = ["-" if one is None else f"{one:.4f}" for one in [*map(scores.get, measures), *of_kinds]]
                rows.append([query_set.id, record.name, protocol, *cells, states[query_set.id, record.name]])
        if rows:
            of_kinds = [f"{measures[0]} {kind}" for kind in query_set.kinds]
            print_table(["topics", "condition", "protocol", *measures, *of_kinds, "state"], rows)


def make_parser() -> argparse.ArgumentParser:
    """The flags of the command."""
    parser = command.parser("regress", "Run regression specs and compare the values with those on record.")
    about = "specs or query sets to run, papers to print (see --list), or YAML files"
    command.add_words(parser, "names", "NAME", about, least=0)
    command.add_flags(parser, RegressRequest, *(one.name for one in dataclasses.fields(RegressRequest)[1:]))
    return parser


def _docs(folder: Path, docs: Path) -> None:
    from rnnreranker.regress.pages.prose import write_prose
    from rnnreranker.regress.papers.site import write_pages

    written = [*write_pages(folder, docs), *write_prose(folder.parent / SOURCES, docs, folder / "results")]
    command.say(f"{len(written)} pages and pictures in {docs}")


if __name__ == "__main__":
    sys.exit(command.run(main))
