"""The plan of a spec, or of all: every command from documents to measures; the runner runs it, pages print it."""

from __future__ import annotations

import gzip
import os
import shlex
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import cache_home, fingerprint
from rnnreranker.parts.base import parts
from rnnreranker.regress.plans.disk import by_large_files, last_readers, peak, readers, sizes
from rnnreranker.regress.plans.maker import Maker
from rnnreranker.regress.plans.step import PASTE_FOLDER, Step, index_name, run_files, work_file
from rnnreranker.regress.specs.entries import Condition, IndexEntry, QuerySet, Work
from rnnreranker.regress.specs.fields import needs_of, needs_text
from rnnreranker.regress.specs.spec import Spec, planned


@dataclass(frozen=True)
class Plan:
    """The steps of conditions on query sets, in an order in which they can be taken; each once."""

    spec: Spec
    folder: Path
    conditions: tuple[Condition, ...]
    query_sets: tuple[QuerySet, ...]
    works: tuple[Work, ...]
    steps: tuple[Step, ...]
    published: Mapping[tuple[str, str], Path] = field(default_factory=dict)  # query set, condition: file
    readers: Mapping[Path, Sequence[Path]] = field(default_factory=dict)  # what is removed when these are made

    def run_files(self, condition: Condition, query_set: QuerySet) -> list[Path]:
        """The run files of a condition: one, or one for each context of a sweep; none where it is not measured."""
        if query_set.id not in (condition.query_sets or (query_set.id,)):
            return []
        given = self.published.get((query_set.id, condition.id))
        return [given] if given else run_files(self.spec, self.folder, condition, query_set)

    def given(self) -> dict[Path, tuple[Condition, QuerySet]]:
        """The files of published runs, which no step makes."""
        pairs = [(entry, one) for one in self.query_sets for entry in self.conditions if entry.published]
        return {path: (entry, one) for entry, one in pairs for path in self.run_files(entry, one)}

    def outputs(self) -> list[Path]:
        """All that the plan is for: the run files of its conditions and the records of its works."""
        runs = [path for one in self.query_sets for entry in self.conditions for path in self.run_files(entry, one)]
        return [*runs, *(work_file(self.spec, self.folder, work) for work in self.works)]

    def indexes(self, steps: Sequence[Step] | None = None) -> list[tuple[IndexEntry, str]]:
        """The indexes of the spec that steps read (None = all), and what `--index` is given of each."""
        read = {step.value("--index") for step in (self.steps if steps is None else steps)}
        named = ((index, index_name(index, self.folder)) for index in self.spec.indexes)
        return [(index, name) for index, name in named if name in read]

    def evaluations(self) -> list[str]:
        """The lines that print the measured values of all runs, one for each query set and protocol."""
        made = {*(step.output for step in self.steps), *self.given()}
        lines = []
        for query_set in self.query_sets:
            paths = [path for condition in self.conditions for path in self.run_files(condition, query_set)]
            runs = [str(path) for path in paths if path in made]  # nothing makes the runs of what is planned
            measures = " ".join(self.spec.measures_of(query_set))
            for protocol in query_set.protocols if runs else ():
                judged = ["--qrels", query_set.qrels, "--protocol", protocol, "--measures", measures]
                lines.append(shlex.join(["python", "-m", "rnnreranker.evaluate", *runs, *judged]))
        return lines

    def lines(self) -> list[str]:
        """The complete plan in lines to paste into a shell: needs, commands, what is planned; pages show the same."""
        sets = [entry.title for entry in self.query_sets if entry.title] if len(self.query_sets) == 1 else []
        lines = [f"# {(sets or [self.spec.title])[0]}", f"# needs in all: {needs_text(self.needs()) or 'nothing'}"]
        added = {one.folder or name for name, one in parts().items()}  # to an index, which has a folder already
        made = (step.output for step in self.steps if step.output.name not in added)
        for folder in dict.fromkeys(output.parent for output in made):
            lines.append(shlex.join(["mkdir", "-p", str(folder)]))
        lines += [f"# {path}: {entry.title}, {one.id}: not made here" for path, (entry, one) in self.given().items()]
        gone = last_readers(self.readers)
        for number, step in enumerate(self.steps, 1):
            needs = f": {needs_text(step.needs)}" if step.needs else ""
            lines += [f"# {number} of {len(self.steps)}{needs}", step.command()]
            lines += [shlex.join(["rm", "-r", str(output)]) for output in gone.get(step.output, ())]
        lines += self.evaluations()
        lacking = {entry.id: planned(self.spec, entry) for entry in self.conditions}
        return [*lines, *(f"# {name}: planned: {text}" for name, text in lacking.items() if text)]

    def needs(self) -> dict[str, Any]:
        """What the plan needs in all; of disk, what its files take at most at a time."""
        total = needs_of([self.spec.needs, *(entry.needs for entry in self.query_sets)] + [s.needs for s in self.steps])
        if "disk_gb" in total:
            size = sizes(self.steps, self.spec)
            total["disk_gb"] -= sum(size.values()) - peak(self.steps, size, last_readers(self.readers))
        return total


def make_plan(
    spec: Spec,
    folder: Path = PASTE_FOLDER,
    conditions: Sequence[Condition] | None = None,
    query_sets: Sequence[QuerySet] | None = None,
    works: Sequence[Work] = (),
    published: Mapping[tuple[str, str], Path] | None = None,
    keep: bool = False,
) -> Plan:
    """The plan of these conditions and those they need, all files under `folder`; None = all.

    Indexes and models are shared by specs: they go to `folder/indexes` and `folder/models`; a relative folder gives
    commands that can be pasted anywhere. published: query set and condition → the published run that it is; of others
    the file is looked for where its own would be. keep: large files that no later step reads.
    """
    query_sets = spec.query_sets if query_sets is None else query_sets
    conditions = spec.conditions if conditions is None else conditions
    maker = Maker(spec, folder, published or {})
    for query_set in query_sets:
        for condition in conditions:
            if query_set.id in (condition.query_sets or (query_set.id,)):
                maker.condition(condition, query_set)
    for work in works:
        maker.work(work)
    steps = tuple(by_large_files(maker.steps, sizes(maker.steps, spec)))
    plan = Plan(spec, folder, tuple(conditions), tuple(query_sets), tuple(works), steps, published or {})
    return plan if keep else replace(plan, readers=_unneeded(plan))


def _unneeded(plan: Plan) -> dict[Path, list[Path]]:
    """What is removed when nobody needs it any more → the outputs of the steps that read it; not what is measured."""
    measured = {plan.spec.redundancy, *(entry.id for entry in plan.spec.indexes if entry.count)}
    named = (index_name(entry, plan.folder) for entry in plan.spec.indexes if entry.id in measured)
    return readers(plan.steps, sizes(plan.steps, plan.spec), [*plan.outputs(), *map(Path, named)])


ARCHIVES = (".gz", ".tar", ".zip")
AT_ONCE = 2**20  # bytes


def check_readable(name: str, part: str) -> None:
    """Nothing, when the data of a name are whole, or are yet to be downloaded.

    Args:
        name: a data set or file; part: "topics" and "qrels" are read, of "documents" the archives of ir_datasets.

    Raises:
        InputError: topics or judgements that are damaged, an archive that is cut off.
        UnavailableError: some that lack beside others that are here, and that cannot be downloaded.
    """
    folder = _folder_of(name)
    if folder is not None and not folder.is_dir():
        return
    if part == "documents":
        for archive in _archives(folder) if folder else ():
            _check_archive(archive)
    else:
        _read(name, part)


def _read(name: str, part: str) -> None:
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.data.topics import load_topics

    if part == "qrels":
        load_qrels(name)
    else:
        load_topics(name)


def _folder_of(name: str) -> Path | None:
    """The folder in which ir_datasets keeps what it downloads of an id; None of other names, and of ids like a file."""
    from rnnreranker.data import local, tripclick
    from rnnreranker.data.irds import SHORT_NAMES
    from rnnreranker.data.names import BUILT_IN_TOPICS, is_path

    if name in BUILT_IN_TOPICS or is_path(name) or local.kept_at(name) is not None:
        return None
    known = ["tripclick"] if tripclick.is_name(name) else SHORT_NAMES.get(name, name).split("/")
    home = Path(os.environ.get("IR_DATASETS_HOME", "~/.ir_datasets")).expanduser()
    return home.joinpath(*known[: 2 if known[0] == "beir" else 1])


def _archives(folder: Path) -> Iterator[Path]:
    """The archives of documents: those of queries and judgements are read as such."""
    yield from sorted(path for path in folder.iterdir() if path.name.endswith(ARCHIVES))


def _check_archive(path: Path) -> None:
    """Read an archive to its end, once for as long as its size and time stay.

    Raises:
        InputError: one that is cut off or damaged.
    """
    status = path.stat()
    seen = cache_home() / "digests" / f"whole-{fingerprint(str(path), status.st_size, status.st_mtime_ns)}"
    if seen.exists():
        return
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                while stream.read(AT_ONCE):
                    pass
        elif path.suffix == ".tar":
            with tarfile.open(path, "r:") as tar:
                last = [member.offset_data + member.size for member in tar][-1:] or [0]
            with open(path, "rb") as stream:  # tarfile takes one that ends within the name of a member
                stream.seek(-(-last[0] // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)
                if stream.read(tarfile.BLOCKSIZE) != tarfile.NUL * tarfile.BLOCKSIZE:
                    raise tarfile.ReadError("no end of the archive")
        else:
            with zipfile.ZipFile(path) as archive:
                if wrong := archive.testzip():
                    raise zipfile.BadZipFile(f"{wrong} is damaged")
    except (EOFError, OSError, zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{path}: cut off or damaged ({said}); delete it and get it again") from None
    seen.parent.mkdir(parents=True, exist_ok=True)
    seen.touch()
