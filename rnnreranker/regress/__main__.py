"""`python -m rnnreranker.regress NAME…`: run specs, compare with what is on record, write pages."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker import command
from rnnreranker.errors import InputError, MissingDependencyError, UnavailableError, nearest

if TYPE_CHECKING:
    from rnnreranker.regress.results import Result
    from rnnreranker.regress.spec import Spec

CHANGED = 1  # exit code: a value beyond its tolerance, or an error in a condition


def main(argv: Sequence[str]) -> int:
    """Run the command with its arguments; the exit code."""
    args = _parser().parse_args(argv)
    from rnnreranker.papers import listing
    from rnnreranker.regress.spec import specs_folder

    folder = specs_folder(args.specs)
    if args.list:
        return _list(folder)
    papers = _check(args, folder)
    if args.runs:
        return _published(folder, args)
    if papers and args.dry_run:
        listing.dry_run_papers(folder, args.names, args.table)
        return 0
    if args.matrix or papers:
        listing.print_matrix(folder, args.names, args.table, cells=not args.matrix)
        return 0
    if args.docs and not args.names:
        return _docs(folder, Path(args.docs_folder))
    return _specs(folder, args)


def _check(args: argparse.Namespace, folder: Path) -> bool:
    """Refuse what does not go together, before any work; whether the names are papers."""
    from rnnreranker.papers.paper import paper_names
    from rnnreranker.regress.recipe import is_recipe
    from rnnreranker.regress.spec import spec_names

    specs, papers = spec_names(folder), paper_names(folder)
    problems = [
        f"{name}: no such spec or paper in {folder}; {nearest(name, [*specs, *papers])}"
        for name in args.names
        if name not in specs and name not in papers and not _path(name, folder).is_file()
    ]
    named = [name for name in args.names if name in papers]
    if named and len(named) < len(args.names) and not args.runs:
        problems.append(f"{', '.join(named)} with specs: papers are printed, specs are run; name one kind at a time")
    if args.table and not named:
        problems.append(f"--table {args.table}: is of a paper; name one, as {papers[0] if papers else 'paper-000'}")
    if args.only and len(args.names) > 1:
        problems.append(f"--only {args.only} with {len(args.names)} names: name the one spec that has this condition")
    if args.record and args.only and any(not is_recipe(_path(name, folder)) for name in args.names if name in specs):
        problems.append("--record with --only: a record holds every condition; leave one of them out")
    if not (args.names or args.runs or args.matrix or args.docs):
        problems.append(f"no spec named: give one or more of {', '.join([*specs, *papers])}, or --list")
    if problems:
        raise InputError("; ".join(problems))
    return bool(named)


def _published(folder: Path, args: argparse.Namespace) -> int:
    """Measure published run files; 1 when one of them cannot be measured, 2 when there is none of these names."""
    from rnnreranker.papers import listing
    from rnnreranker.regress.published_runs import record, records_file

    measured, failed = listing.measure_runs(folder, args.names, Path(args.runs), args.only)
    if not measured:
        return CHANGED if failed else command.BAD_INPUT
    if args.record:
        record(records_file(folder), measured)
        command.say(f"on record: {records_file(folder)}")
    fresh = () if args.record else measured
    listing.print_matrix(folder, args.names, args.table, bool(args.table), fresh)
    return CHANGED if failed else 0


def _specs(folder: Path, args: argparse.Namespace) -> int:
    """Run specs and recipes, or print their plans."""
    from rnnreranker.files import cache_home
    from rnnreranker.regress import recipe_command
    from rnnreranker.regress.recipe import is_recipe, read_recipe
    from rnnreranker.regress.spec import read_spec

    paths = [_path(name, folder) for name in args.names]
    recipes = [read_recipe(path, data=True) for path in paths if is_recipe(path)]
    specs = [read_spec(str(path), folder) for path in paths if not is_recipe(path)]
    if args.dry_run:
        for recipe in recipes:
            recipe_command.dry_run(recipe, recipe_command.chosen(recipe, args.only))
        return _dry_run(specs, args.only)
    work = Path(args.output) if args.output else cache_home() / "regress"
    codes = [recipe_command.run(recipe, work, args.only, args.jobs, folder, args.record) for recipe in recipes]
    codes += [_run(spec, folder, args) for spec in specs]
    if args.docs:
        _docs(folder, Path(args.docs_folder))
    if all(code == command.BAD_INPUT for code in codes):
        return command.BAD_INPUT
    return CHANGED if CHANGED in codes else 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("regress", "Run regression specs and compare the values with those on record.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="specs to run or papers to print (see --list), or YAML files"
    )
    parser.add_argument("--list", action="store_true", help="print the specs and whether results are on record")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, run nothing")
    parser.add_argument("--only", metavar="CONDITION", help="run one condition and those it needs")
    parser.add_argument("--record", action="store_true", help="put the measured values on record in the specs folder")
    parser.add_argument("--docs", action="store_true", help="write all pages from what is on record")
    parser.add_argument(
        "--docs-folder", default="docs", metavar="DIR", help="for DIR/regressions/*.md, DIR/index.html (default: docs)"
    )
    parser.add_argument("--runs", metavar="DIR", help="measure published run files in DIR in place of retrieving")
    parser.add_argument("--matrix", action="store_true", help="count the papers' published cells by state")
    parser.add_argument("--table", metavar="N", help="of a paper: only this table")
    parser.add_argument("--jobs", type=command.positive, default=1, metavar="N", help="steps at a time (default: 1)")
    parser.add_argument("--specs", metavar="DIR", help="folder of specs (default: the checkout's, else the package's)")
    parser.add_argument("--output", metavar="DIR", help="index, runs and page go to DIR/NAME (default: a cache)")
    return parser


def _list(folder: Path) -> int:
    from collections import Counter

    from rnnreranker.papers.cells import STATES
    from rnnreranker.papers.listing import state
    from rnnreranker.papers.matrix import Matrix
    from rnnreranker.papers.paper import paper_names, read_paper
    from rnnreranker.regress.results import read_results, results_file
    from rnnreranker.regress.spec import read_spec, spec_names
    from rnnreranker.tables import print_table

    matrix = Matrix(folder, commands=False)
    rows = []
    for name in spec_names(folder):
        recipe = matrix.recipes.get(name)
        if recipe is not None:
            rows.append([name, len(recipe.conditions), state(recipe, matrix), recipe.title])
            continue
        spec = read_spec(name, folder)
        results = read_results(results_file(folder, spec))
        rows.append([name, len(spec.conditions), f"on record {results[-1].date[:10]}" if results else "-", spec.title])
    for name in paper_names(folder):
        paper = read_paper(name, folder)
        states = Counter(cell["state"] for cell in matrix.cells if cell["paper"] == paper.id)
        counts = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
        rows.append([name, "-", counts, paper.title])
    print_table(["spec", "conditions", "state", "title"], rows)
    return 0


def _path(name: str, folder: Path) -> Path:
    return Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"


def _dry_run(specs: list[Spec], only: str | None) -> int:
    from rnnreranker.regress.plan import make_plan
    from rnnreranker.regress.report import PASTE_FOLDER

    for spec in specs:
        plan = make_plan(spec, PASTE_FOLDER / spec.name, only)
        print(shlex.join(["mkdir", "-p", str(plan.folder)]))
        for step in plan.steps:
            print(step.command())
        for query_set in spec.query_sets:
            print(plan.evaluation(query_set))
    return 0


def _run(spec: Spec, folder: Path, args: argparse.Namespace) -> int:
    from rnnreranker.files import cache_home
    from rnnreranker.pages import write_page
    from rnnreranker.regress import results
    from rnnreranker.regress.report import page
    from rnnreranker.regress.runner import run_spec

    work = (Path(args.output) if args.output else cache_home() / "regress") / spec.name
    try:
        result = run_spec(spec, work, args.only)
    except (UnavailableError, MissingDependencyError) as error:
        command.say(f"skipped: {error}")
        return command.BAD_INPUT
    record = results.results_file(folder, spec)
    on_record = results.expected(results.read_results(record), result.fingerprint)
    found = results.states(spec, result, on_record)
    _print(spec, result, found)
    write_page(work / f"{spec.name}.md", page(spec, [result]))
    if args.record:
        results.record(record, result)
        command.say(f"on record: {record}")
    print(f"page: {work / (spec.name + '.md')}")
    if args.only and result.left_out.get(args.only, "").startswith("skipped"):
        return command.BAD_INPUT
    states = [state.split(":")[0] for row in found.values() for state in row.values()]
    return CHANGED if "error" in states or ("changed" in states and not args.record) else 0


def _print(spec: Spec, result: Result, found: dict[str, dict[str, str]]) -> None:
    from rnnreranker.tables import print_table

    rows = []
    for query_set in spec.query_sets:
        for condition in spec.conditions:
            state = found[query_set.id].get(condition.id)
            if state is None:
                continue
            values = result.values[query_set.id].get(condition.id, {})
            cells = [f"{values[measure]:.4f}" if measure in values else "-" for measure in spec.measures]
            rows.append([query_set.id, condition.title, *cells, state])
    print_table(["topics", "condition", *spec.measures, "state"], rows)


def _docs(folder: Path, docs: Path) -> int:
    from rnnreranker.papers.site import write_pages

    command.say(f"{len(write_pages(folder, docs))} pages in {docs}")
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
