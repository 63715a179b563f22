"""`python -m rnnreranker.experiment`: compare systems on your topics in one table, with advice."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rnnreranker.base import command
from rnnreranker.base.command import interval
from rnnreranker.base.device import ComputesOnDevices
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError, argument, refuse
from rnnreranker.base.files import check_writable, write_json
from rnnreranker.base.method import names
from rnnreranker.base.settings import Request, asked, located, setting
from rnnreranker.data.names import ENCODED, ENCODER, INDEX, QRELS, TOPICS
from rnnreranker.evaluate.protocols import protocol_setting

if TYPE_CHECKING:
    import pandas

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.evaluate.scores import Scores
    from rnnreranker.index.opening import Index
    from rnnreranker.runs import Run

FUSIONS = ("minmax", "rrf")  # of pairs, where no systems are given
JUDGED = "Judged@10"
TESTED = ("difference", "low", "high", "p_holm", "won", "lost")  # columns on the own first stage
HOW = ("encoder", "encoded_queries", "threads", "device", "compute_dtype")  # of every search alike
FEW_TOPICS, FEW_JUDGED = 100, 0.9  # below these a warning says that the values say little
SURE = 0.05  # p after Holm's correction, below which two systems differ
EPILOG = """A system is FIRST [by FUSION] [> RERANKER …]; FIRST is a retriever, several joined by +, or a file of a run.
Default: each retriever of the index, pairs of words and vectors by minmax and by rrf, and each of these with rnn.
The difference is that from the system's own first stage; milliseconds leave out the encoding of queries.

examples:
  python -m rnnreranker.experiment --index my-index --topics topics.tsv --qrels qrels.txt
  python -m rnnreranker.experiment --index my-index --topics topics.tsv --qrels qrels.txt \\
      --systems "bm25 | bm25+dense by minmax > rnn | bm25+dense > rnn:context=100 | run.txt > rnn"
"""


@dataclass(frozen=True)
class ExperimentRequest(ComputesOnDevices, Request):
    """The arguments of `run_experiment`, and flags of the command."""

    index: str | Path | Index = setting(MISSING, INDEX)
    topics: str | Path | Mapping[str, str] = setting(MISSING, TOPICS)
    qrels: Qrels = setting(MISSING, QRELS)
    systems: str | Sequence[str] | None = setting(None, "with | between them (default: see below)")
    measures: str | Sequence[str] = setting("nDCG@10 RR@10 AP", "the first one is tested, and decides")
    protocol: str | None = protocol_setting(metavar="NAME")
    hits: int = setting(1000, "documents a query", at_least=1)
    encoder: str | None = setting(None, ENCODER)
    encoded_queries: str | Path | None = setting(None, ENCODED, metavar="NPY")
    threads: int | None = setting(None, "default: one per core", at_least=1)
    output: str | None = setting(None, "write the rows with all their settings", metavar="FILE.json")


@dataclass(frozen=True)
class System:
    """A first stage and its rerankers.

    Attributes:
        first: retrievers joined by +, or a file of a run; fuse: the fusion of several, None = as `search`.
        rerank: rerankers in order.

    >>> System.read("bm25+dense  by rrf:k=20 > rnn:context=100").base
    System(first='bm25+dense', fuse='rrf:k=20', rerank=())
    """

    first: str
    fuse: str | None = None
    rerank: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> System:
        """The system of a line; InputError if a part is empty."""
        first, *rerank = split_at(">", text)
        if not all([first, *rerank]):
            raise InputError(f"{argument('systems')}: {text!r}; expected FIRST [by FUSION] [> RERANKER …]")
        fused = re.fullmatch(r"(.*\S)\s+by\s+(\S+)", first)
        rerank = [] if rerank == ["none"] else rerank
        return cls(fused[1] if fused else first, fused[2] if fused else None, tuple(rerank))

    @property
    def base(self) -> System:
        """Its own first stage."""
        return dataclasses.replace(self, rerank=())

    @property
    def of_run(self) -> bool:
        """Whether the first stage is a file."""
        return self.first not in names("retriever") and Path(self.first).expanduser().is_file()

    def __str__(self) -> str:
        return " > ".join([self.first + (f" by {self.fuse}" if self.fuse else ""), *self.rerank])


def split_at(sign: str, text: str) -> list[str]:
    """The pieces of a text between signs outside double quotes."""
    return [piece.strip() for piece in re.split(re.escape(sign) + r'(?=(?:[^"]*"[^"]*")*[^"]*$)', text)]


def run_experiment(
    index: str | Path | Index, topics: str | Path | Mapping[str, str], qrels: Qrels, **others: Any
) -> pandas.DataFrame:
    """Search and rerank by several systems, measure and compare them, as `python -m rnnreranker.experiment`.

    Args:
        index, topics, qrels: as in `Index.search` and `evaluate_run`.
        others: fields of `ExperimentRequest`.

    Returns:
        A row for each system, first stages included: `system`; each measure; from its own first stage in the first
        measure: difference, low, high (95% bootstrap interval), p_holm (paired t-test, Holm's correction over the
        table), won and lost (topics); `Judged@10` (share of judged documents in the first ten); `ms` a query without
        encoding; `settings`. Missing values are NaN. `attrs` has `advice` (a sentence) and `protocol`.

    Raises:
        InputError: all faults of the arguments; no topic is judged.
        UnavailableError, MissingDependencyError: a part of the index is not usable here.
    """
    request = asked(ExperimentRequest, {"index": index, "topics": topics, "qrels": qrels, **others})
    return experiment(request, check(request))


def check(request: ExperimentRequest) -> list[System]:
    """The requested systems, each after its own first stage; [] = the usual ones.

    Raises:
        InputError: all faults of the systems.
    """
    from rnnreranker.evaluate.measures import parse_measures

    parse_measures(request.measures)
    texts = request.systems
    texts = split_at("|", texts) if isinstance(texts, str) else texts or []
    systems = list(dict.fromkeys(one for text in texts for one in (System.read(text).base, System.read(text))))

    def check_system(system: System) -> None:
        with located(str(system)):
            wanted = request_of(request, system)
            wanted.check((wanted.auto, f"{argument('systems')}: auto depends on the index; name its retrievers"))

    refuse(*(partial(check_system, one) for one in systems))
    check_writable(request.output)
    return systems


def request_of(request: ExperimentRequest, system: System) -> Any:
    """The `SearchRequest` of a system."""
    from rnnreranker.search.request import SearchRequest

    same = ("index", "topics", "hits", *HOW)
    first: dict[str, Any] = {"run" if system.of_run else "retrieve": system.first, "fuse": system.fuse}
    rerank = list(system.rerank) or "none"
    return SearchRequest(**{name: getattr(request, name) for name in same}, **first, rerank=rerank)


def experiment(request: ExperimentRequest, systems: list[System]) -> pandas.DataFrame:
    """`run_experiment` for a checked request."""
    import pandas

    from rnnreranker.evaluate.comparison import SAME, differences

    request, scores, times = measured(request, systems)
    count, values = len(scores.topics), dict(zip(times, scores.values[:, :, 0], strict=True))
    reranked = [one for one in times if one.rerank]
    tests = dict(zip(reranked, differences(values, [(one, one.base) for one in reranked]), strict=True))
    rows = []
    for one, means, judged in zip(times, scores.values.mean(axis=1), scores.judged, strict=True):
        gaps = values[one] - values[one.base]
        tested = {"won": (gaps > SAME).sum(), "lost": (gaps < -SAME).sum(), **tests[one]} if one.rerank else {}
        own = {"system": str(one), JUDGED: judged.mean(), "ms": times[one], "settings": settings_of(request, one)}
        rows.append(own | tested | dict(zip(scores.measures, means, strict=True)))
    columns = dict.fromkeys(["system", *scores.measures, *TESTED, JUDGED, "ms", "settings"])
    table = pandas.DataFrame(rows, columns=[*columns])
    taken, sentence = advice(scores, list(times))
    table.attrs = {"advice": sentence, "system": str(taken), "protocol": scores.protocol, "topics": count}
    if count < FEW_TOPICS:
        command.notice(f"{command.counted(count, 'topic')}: fewer than {FEW_TOPICS} tell only large differences apart")
    if unknown := table["system"][table[JUDGED] < FEW_JUDGED].tolist():
        command.notice(f"{JUDGED} is below {FEW_JUDGED} for {', '.join(unknown)}: their values may be too low")
    return table


def measured(
    request: ExperimentRequest, systems: Sequence[System]
) -> tuple[ExperimentRequest, Scores, dict[System, float]]:
    """The request with index and topics opened, scores of the systems, and their milliseconds a query."""
    from rnnreranker import open_index, warm_up
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.evaluate.evaluating import evaluate_runs
    from rnnreranker.evaluate.measures import notice_cut
    from rnnreranker.evaluate.protocols import protocol_of

    topics, judged = topics_of(request.topics), qrels_of(request.qrels)
    judged = judged.copy(deep=False)
    judged.attrs["protocol"] = protocol_of(judged, request.protocol)
    known = dict.fromkeys(judged["query_id"].tolist())
    if not (wanted := {qid: text for qid, text in topics.items() if qid in known}):
        raise InputError(f"{request.shown('qrels')}: judges none of the {len(topics)} topics; give their judgements")
    if lost := len(known) - len(wanted):
        command.say(f"{request.shown('topics')}: {lost} of {len(known)} judged topics are not there and are left out")
    index = open_index(request.index) if isinstance(request.index, str | Path) else request.index
    searched_for = wanted if request.encoded_queries is None else topics  # rows of vectors are those of all topics
    request = dataclasses.replace(request, index=index, topics=searched_for)
    warm_up()
    done = searched(request, systems or usual_systems(request))
    judged = judged[judged["query_id"].isin(list(wanted))]
    named = {str(one): run.head(request.hits) for one, (run, _) in done.items()}
    notice_cut(request.measures, request.hits)
    depths = {str(one): request_of(request, one).depth for one in done if one.rerank and "+" in one.first}
    if deeper := [name for name, depth in depths.items() if depth > request.hits]:
        shown, at = ", ".join(deeper), argument("hits", max(depths.values()))
        command.notice(f"{shown}: the fusion is deeper than that of the first stage, and scores differ; give {at}")
    scores = evaluate_runs(named, judged, request.measures).scores
    return request, scores, {one: ms for one, (_, ms) in done.items()}


def usual_systems(request: ExperimentRequest) -> list[System]:
    """What an index can do here: its retrievers, pairs of words and vectors, and each of these with rnn.

    Raises:
        UnavailableError: no retriever of the index works on this machine.
    """
    from rnnreranker.base.method import find
    from rnnreranker.search.request import KINDS, SAME

    index: Any = request.index
    usable: list[list[str]] = [[] for _ in KINDS]
    for own, kind in zip(usable, KINDS, strict=True):
        for name in kind:
            if not all(map(index.has, find("retriever", name).needs)) or SAME.get(name) in own:
                continue
            try:
                run_of(request, System(name), 1)
                own.append(name)
            except (UnavailableError, MissingDependencyError) as error:
                command.notice(f"{name} is left out: {error}")
    words, vectors = usable
    if not words + vectors:
        raise UnavailableError(f"{index.name}: this machine cannot search any part of this index")
    firsts = [System(name) for name in words + vectors]
    firsts += [System(f"{one}+{other}", how) for one in words for other in vectors for how in FUSIONS]
    rnn = "rnn" if index.has("vectors") else "rnn:from=neighbours"
    if not (index.has("vectors") or index.has("neighbours")):
        command.notice(f"{index.name} has neither vectors nor a graph of neighbours: nothing is reranked")
        return firsts
    return [one for first in firsts for one in (first, dataclasses.replace(first, rerank=(rnn,)))]


def searched(request: ExperimentRequest, systems: Sequence[System]) -> dict[System, tuple[Run, float]]:
    """The run of each system, as of `search`, and its milliseconds a query; NaN for a run of a file.

    Searches a first stage once for each depth. An untimed first call with one document a query opens parts and encodes
    the queries.
    """

    @cache
    def timed(system: System, depth: int) -> tuple[Run, float]:
        before, spent = timed(system.base, depth) if system.rerank else (None, 0.0)
        if not (read := system.of_run and before is None):
            run_of(request, system, 1, before)
        begun = time.perf_counter()
        run = run_of(request, system, depth, before)
        spent = np.nan_to_num(spent) + 1000 * (time.perf_counter() - begun) / max(len(run), 1)
        return run, float("nan") if read else spent

    shown = command.progress(systems, unit="systems", what="experiment")
    return {one: timed(one, request_of(request, one).depth) for one in shown}


def run_of(request: ExperimentRequest, system: System, hits: int, before: Run | None = None) -> Run:
    """The run of a system with `hits` documents a query; before: the run of its first stage."""
    from rnnreranker.search.searching import first_stage_of

    index, topics = cast(Any, (request.index, request.topics))
    if before is None and system.of_run:
        return first_stage_of(Path(system.first).expanduser()).head(hits).only(topics)
    how: dict[str, Any] = {name: getattr(request, name) for name in HOW} | {"hits": hits}
    if before is None:
        return index.search(topics, system.first, None, fuse=system.fuse, **how)
    return index.rerank(before.head(hits), list(system.rerank), topics, **how)


def settings_of(request: ExperimentRequest, system: System) -> dict[str, Any]:
    """All settings of a system as plain values, defaults included."""
    methods = request_of(request, system)
    about: dict[str, Any] = {}
    for kind, of in {"retrieve": methods.retrievers, "rerank": methods.rerankers}.items():
        about[kind] = [{"name": one.name, **one.params.to_dict()} for one in of]
        for one, own in zip(of, about[kind], strict=True):
            own |= {"from": one.source, "queries": one.queries} if one.takes_source else {}
    if len(methods.retrievers) > 1:
        about["fuse"] = methods.fusion.to_dict()
    return about | {"run": system.first if system.of_run else None, "hits": request.hits}


def advice(scores: Scores, systems: Sequence[System]) -> tuple[System, str]:
    """The system to take, and a sentence.

    The start is the best first stage by the first measure. A system with one reranker replaces it if its mean is higher
    and the difference is significant (paired t-test, Holm's correction over systems with as many rerankers); systems
    with more rerankers follow in the same way.
    """
    from rnnreranker.evaluate.comparison import differences

    values = dict(zip(systems, scores.values[:, :, 0], strict=True))
    means, measure = {one: float(own.mean()) for one, own in values.items()}, scores.measures[0]
    taken, said = max((one for one in systems if not one.rerank), key=lambda one: means[one]), ""
    counts = sorted({len(one.rerank) for one in systems} - {0})
    for count in counts:
        others = [one for one in systems if len(one.rerank) == count]
        tests = dict(zip(others, differences(values, [(one, taken) for one in others]), strict=True))
        if better := [one for one in others if means[one] > means[taken] and tests[one]["p_holm"] < SURE]:
            best = max(better, key=lambda one: means[one])
            gap = interval(*(tests[best][name] for name in TESTED[:3]))
            p = tests[best]["p_holm"]
            said = f"take {best}: {measure} {means[best]:.4f}, {gap} over {taken}, p {p:.2g} (Holm)"
            taken = best
    off = "leave it off: no reranked system is shown to be better than" if counts else "nothing was reranked; take"
    return taken, said or f"{off} {taken}, {measure} {means[taken]:.4f}"


@command.main
def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    from rnnreranker.evaluate.comparison import print_scores

    request = command.request(make_parser().parse_args(argv), ExperimentRequest)
    table = experiment(request, check(request))
    measures = list(table.columns[1 : table.columns.get_loc("difference")])
    rows = []
    for row in table.to_dict("records"):
        gap, ms = ["-"] * 3, "-" if np.isnan(row["ms"]) else f"{row['ms']:.2f}"
        if not np.isnan(row["difference"]):
            won = f"{row['won']:.0f}/{row['lost']:.0f}"
            gap = [interval(*(row[name] for name in TESTED[:3])), f"{row['p_holm']:.3g}", won]
        rows.append([row["system"], *(f"{row[name]:.4f}" for name in measures), *gap, f"{row[JUDGED]:.3f}", ms])
    header = ["system", *measures, f"{measures[0]} - first stage", "p (Holm)", "won/lost", JUDGED, "ms a query"]
    print_scores(header, rows, table.attrs["protocol"])
    print(f"\n{table.attrs['advice']}")
    if request.output:
        plain = table.astype(object).where(table.notna(), None).to_dict("records")
        write_json(request.output, {**table.attrs, "index": request.shown("index"), "rows": plain})
    return 0


def make_parser() -> Any:
    """The parser of the command."""
    text = "Say what systems are worth on your topics, and whether reranking helps there."
    parser = command.parser("experiment", text, EPILOG)
    command.add_flags(parser, ExperimentRequest, "index", "topics", "qrels", "systems")
    group = parser.add_argument_group("how")
    command.add_flags(group, ExperimentRequest, "measures", "protocol", "hits", *HOW, "output")
    return parser


if __name__ == "__main__":
    raise SystemExit(command.run(main))
