"""The benchmark measures what it says and puts it on record; nothing here asserts a time."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnreranker.base.errors import InputError, UnavailableError
from rnnreranker.base.java import find_java
from rnnreranker.base.record import Record, read_records
from rnnreranker.encode.dense.encoder import has_bfloat16
from rnnreranker.lab.bench import bench, benchmark, collection_size, corpus, fresh_process, gpu, graph_size
from rnnreranker.lab.bench.__main__ import main
from rnnreranker.lab.bench.corpus import rerank_corpus, write_corpus
from rnnreranker.lab.bench.file_to_file import file_to_file
from rnnreranker.lab.bench.page_cache import drop
from rnnreranker.lab.bench.parts import ASKED, PARTS
from rnnreranker.lab.bench.sizes import ENCODERS, FULL, PeerSizes, Sizes
from rnnreranker.lab.bench.summaries import in_pairs, judged, missed, quartiles, ratio_of, slope
from rnnreranker.lab.bench.synthetic import contexts, documents, run_scores
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.score_use import why_useless

TINY = Sizes(
    dimension=8,
    pairs=2,
    questions=1,
    contexts=(10, 20),
    growth=(10, 20, 40),
    files=((5, 20, 10), (4, 10, 10)),
    corpora=(50, 100),
    corpus_queries=3,
    corpus_depth=60,
    times=1,
    cross_encoders=((1, 64),),
    scored=4,
    encoded=3,
    graphs=(100, 1000),
    labelled=(200, 30, 500),
    peers=PeerSizes(120, 8, 6, 3, 5, 30, 2, 40, 6, 2, 10),
)
RATIO = ["ratio", "low", "high", "pairs"]
JUDGED = ["bound", "aim", "verdict"]
CELLS = {
    "kernel": ["N", "d", "tau", "scale", "vectors", "gram_us", "kernel_us", *RATIO, *JUDGED],
    "scale": ["N", "d", "tau", "none_us", "minmax_us", *RATIO, *JUDGED],
    "run": ["N", "d", "vectors_us", "default_us", *RATIO, *JUDGED],
    "probes": ["N", "d", "tau", "one_us", "ten_us", *RATIO, *JUDGED],
    "expanding": ["method", "documents", "N", "d", "K", "query_us", "after"],
    "compile": ["cache", "times", "import_s", "call_s", "processor_s", "unwaited_s", *JUDGED],
    "question": ["retriever", "question", "files", "documents", "torch_s", "search_s", *RATIO, *JUDGED],
    "memory": ["N", "d", "tau", "threads", "before_MB", "most_MB", "worker_MB", *JUDGED],
    "files": [
        "queries",
        "depth",
        "context",
        "d",
        "times",
        "read_s",
        "rerank_s",
        "write_s",
        "total_s",
        "processor_s",
        *JUDGED,
    ],
    "slope": ["N", "d", "gram_us", "kernel_us", "ratio"],
    "corpus": ["rows", "d", "queries", "depth", "threads", "first_ms", "warm_ms", "RssAnon_MB", *JUDGED],
    "pairs": [
        *("layers", "width", "candidates", "batch_tokens", "bare_pairs_s", "rerank_pairs_s"),
        *RATIO,
        *("new_texts", "model_pairs_s", "of_model"),
        *JUDGED,
    ],
    "encoding": [
        *("model", "by", "texts", "padded_tokens", "bare_texts_s", "encode_texts_s"),
        *RATIO,
        *("model_texts_s", "of_model"),
        *JUDGED,
    ],
    "index-encoding": [
        *(
            "model",
            "by",
            "dtype",
            "1-cosine",
            "texts",
            "bare_texts_s",
            "index_texts_s",
            "ratio",
            "low",
            "high",
            "pairs",
        ),
        *("model_texts_s", "of_model"),
        *JUDGED,
    ],
    "graph": [
        *("N", "d", "documents", "K", "known", "queries", "others", "processes", "gram_us", "graph_us"),
        *("ratio", "lowest", "highest", "pairs"),
        *JUDGED,
    ],
    "graph-threads": ["N", "d", "one_us", "two_us", *RATIO],
    "graph-files": [
        *("from", "queries", "depth", "context", "read_s", "rerank_s", "write_s", "total_s", "processor_s"),
        *JUDGED,
    ],
    "graph-size": [
        *("documents", "d", "K", "threads", "search", "make_s", "processor_s", "recall", "graph_MB", "resident_MB"),
        *("open_ms", "candidates", "cold_us", "warm_us"),
    ],
    "label-jobs": [
        *("from", "queries", "candidates", "documents", "d", "processor_s", "queries_per_s"),
        *("file_MB", "before_MB", "most_MB"),
    ],
    "collection": [
        *("stage", "documents", "d", "queries", "by", "elapsed_s", "processor_s", "disk_MB", "RssAnon_MB"),
    ],
    "labels": ["N", "d", "positives", "gram_us", "labels_us", *RATIO, "queries_per_s", *JUDGED],
    "gather": ["rows", "d", "queries", "candidates", "distinct", "gather_ms", "low", "high", "times", *JUDGED],
    "dtype": ["N", "d", "float32_us", "float16_us", *RATIO],
    "threads": ["N", "d", "one_us", "two_us", *RATIO],
}


def installed(kind: str, name: str) -> bool:
    """Whether a model's weights are here, and what runs it."""
    from rnnreranker.encode.model_folder import find_model

    if kind != "encoder" and importlib.util.find_spec("sentence_transformers") is None:
        return False
    try:
        return bool(find_model(name, kind) if kind != "late-encoder" else find_model("minilm"))
    except UnavailableError:
        return False


def has_java() -> bool:
    """Whether BM25 can be made and searched here."""
    try:
        find_java()
    except UnavailableError:
        return False
    return importlib.util.find_spec("pyserini") is not None


ROWS = {
    "kernel": 24,
    "scale": 4,
    "run": 2,
    "expanding": 5,
    "probes": 1,
    "compile": 2,
    "memory": 4,
    "files": 2,
    "slope": 4,
    "corpus": 2,
    "graph": 8,
    "graph-threads": 2,
    "graph-files": 2,
    "graph-size": 2,
    "labels": 2,
    "label-jobs": 2,
    "gather": 2,
    "pairs": int(importlib.util.find_spec("sentence_transformers") is not None),
}
ROWS |= {"question": 7 + 3 * installed("sparse-encoder", "splade-tiny") + 2 * has_java()}
ROWS |= {"encoding": sum(installed(kind, name) for kind, name in ENCODERS)}
ROWS |= {"collection": 6 + bool(importlib.util.find_spec("distributed")) + 2 * installed(*ENCODERS[-1])}
ROWS |= {"index-encoding": installed(*ENCODERS[-1]) * (1 + has_bfloat16())}
ROWS |= {"dtype": 2, "threads": 2}


def test_files_are_dropped_from_the_page_cache_and_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_bytes(bytes(range(256)) * 4096)
    (tmp_path / "nothing").symlink_to(tmp_path / "gone")
    assert 0 <= drop([tmp_path]) <= 1
    assert drop([tmp_path / "gone"]) == 0
    assert (tmp_path / "in" / "file").read_bytes() == bytes(range(256)) * 4096


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """What a whole run with tiny sizes writes; its table is looked at in passing."""
    path = tmp_path_factory.mktemp("bench") / "record.json"

    def without_compiling(module: str, function: str, environment: dict[str, str] | None = None, **values: Any) -> Any:
        return process_of_its_own(module, function, {**(environment or {}), "NUMBA_DISABLE_JIT": "1"}, **values)

    process_of_its_own = fresh_process.in_fresh_process
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "QUICK", TINY)
        patch.setattr(benchmark, "QUICK_SECONDS", math.inf)  # however busy the machine
        for room in (fresh_process, corpus, collection_size):
            patch.setattr(room, "in_fresh_process", without_compiling)
        assert main(["--quick", "--output", str(path)]) == 0
    (made,) = read_records(path)
    return made


@pytest.mark.long
def test_the_record_names_machine_versions_and_command(record: Record) -> None:
    assert (record.kind, record.spec, record.name) == ("benchmark", "", "performance-quick")
    assert sorted(record.outcome) == ["load", "parts", "processor", "quick", "sizes"]
    assert record.outcome["quick"] is True
    assert record.outcome["sizes"]["contexts"] == [10, 20]
    assert record.versions["numpy"] == np.__version__
    assert [made["command"] for made in record.commands] == ["python -m rnnreranker.bench --quick"]
    assert 0 < record.commands[0]["seconds"] == record.seconds


@pytest.mark.parametrize("name", [name for name in PARTS if name not in ASKED])
@pytest.mark.long
def test_every_part_is_measured(name: str, record: Record) -> None:
    rows = record.outcome["parts"][name]["rows"]
    assert len(rows) == ROWS[name]
    for row in rows:
        assert sorted(row) == sorted(CELLS[name])
        for cell, value in row.items():
            if cell.endswith(("_us", "_s", "_ms")) and value is not None:
                assert value > 0, (cell, row)
        if "low" in row:
            assert 0 < row["low"] <= row.get("ratio", row.get("gather_ms")) <= row["high"]
            assert row.get("pairs", row.get("times")) == (TINY.questions if name == "question" else TINY.pairs)


@pytest.mark.long
def test_large_collections_are_computed_apart_from_what_is_measured(record: Record) -> None:
    part = record.outcome["parts"]["collection"]
    slopes, made = part["derived"]
    rows = {(row["stage"], row["of"]): row for row in slopes["rows"]}
    assert {stage for stage, _ in rows} >= {"vectors", "labels", "batch"}
    ids = len("d50\n") * 50 / 1e6
    measured = [row for row in part["rows"] if row["stage"] == "vectors"]
    assert measured[0]["disk_MB"] == pytest.approx(50 * 8 * 2 / 1e6 + ids, abs=1e-3)
    per_document = (measured[1]["disk_MB"] - measured[0]["disk_MB"]) / 50
    assert rows["vectors", "disk_MB"]["slope"] == pytest.approx(per_document * 1e6)
    assert (rows["labels", "disk_MB"]["by"], rows["labels", "RssAnon_MB"]["by"]) == ("power", "line")
    found = {(row["collection"], row["stage"], row["cores"]): row for row in made["rows"]}
    version = found["MS MARCO v2 passages", "vectors", 16]
    assert version["disk_GB"] == pytest.approx(per_document * 138_364_198 / 1000, rel=1e-3)
    assert {row["fits"] for row in made["rows"]} <= {"yes", "no", ""}
    assert all((row["hours"] is None) == (row["stage"] in ("vectors", "batch")) for row in made["rows"])


@pytest.mark.long
def test_bounds_belong_to_their_sizes(record: Record) -> None:
    for name in ("kernel", "probes", "files", "corpus", "labels", "gather"):  # tiny sizes have none
        assert {(row["bound"], row["verdict"]) for row in record.outcome["parts"][name]["rows"]} == {(None, "")}
    assert {row["bound"] for row in record.outcome["parts"]["scale"]["rows"]} == {1.1}
    assert [row["bound"] for row in record.outcome["parts"]["compile"]["rows"]] == [6.0, 0.5]
    assert {row["bound"] for row in record.outcome["parts"]["memory"]["rows"]} == {16.0}


def test_the_whole_table_has_the_sizes_that_are_promised() -> None:
    assert (FULL.dimension, FULL.pairs, FULL.contexts) == (768, 21, (60, 200, 1000))
    assert FULL.files == ((6980, 60, 60), (6980, 1000, 60), (6980, 1000, 1000))
    assert FULL.corpora[-1] == 1_000_000


@pytest.mark.long
def test_only_some_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(benchmark, "QUICK", TINY)
    path = tmp_path / "record.json"
    arguments = ["--quick", "--only", "slope", "--only", "dtype", "--pairs", "3", "--output", str(path)]
    assert main(arguments) == 0
    (made,) = read_records(path)
    assert made.name == "performance-quick-slope-dtype"
    parts = made.outcome["parts"]
    assert list(parts) == ["slope", "dtype"]
    assert [row["pairs"] for row in parts["dtype"]["rows"]] == [3, 3]
    lines = capsys.readouterr().out.splitlines()
    assert "\t".join(CELLS["dtype"]) in lines
    assert lines[0].startswith("# ")


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--check"], 1)])
def test_a_missed_bound(
    flags: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [judged({"N": 60, "ratio": 1.95}, "ratio", 1.9, 1.6), judged({"N": 200, "ratio": 1.0}, "ratio", 1.7)]
    part = {"title": "made up", "note": "made up.", "rows": rows}
    monkeypatch.setattr(benchmark, "measure", lambda names, sizes, seconds: {"kernel": part})
    assert main(["--quick", *flags]) == code
    shown = capsys.readouterr()
    assert shown.err == "over its bound: kernel: N 60, ratio 1.95, bound 1.90, aim 1.60\n"
    assert "60\t1.95\t1.90\t1.60\tover" in shown.out
    assert "200\t1.00\t1.70\t-\tok" in shown.out


def test_missed_bounds_are_only_those() -> None:
    parts = {"kernel": {"rows": [judged({"ratio": 1.9}, "ratio", 1.9, 1.6)]}, "slope": {"rows": [{"ratio": 9.0}]}}
    assert missed(parts) == []


@pytest.mark.parametrize(
    ("value", "bound", "aim", "verdict"),
    [
        (1.6, 1.9, 1.6, "aim"),
        (1.61, 1.9, 1.6, "ok"),
        (1.9, 1.9, 1.6, "ok"),
        (1.91, 1.9, 1.6, "over"),
        (1.0, 1.1, None, "ok"),
        (1.2, 1.1, None, "over"),
        (9.0, None, None, ""),
    ],
)
def test_verdicts(value: float, bound: float | None, aim: float | None, verdict: str) -> None:
    row = judged({"ratio": value}, "ratio", bound, aim)
    assert row == {"ratio": value, "bound": bound, "aim": aim, "verdict": verdict}


def test_quartiles_of_numbers_worked_out_by_hand() -> None:
    assert quartiles([7.0]) == (7.0, 7.0, 7.0)
    assert quartiles([4.0, 1.0]) == (1.75, 2.5, 3.25)
    assert quartiles(list(range(21, 0, -1))) == (6.0, 11.0, 16.0)
    values = np.random.default_rng(0).standard_normal(22).tolist()
    np.testing.assert_allclose(quartiles(values), np.percentile(values, [25, 50, 75]))


def test_the_ratio_is_that_of_pairs_not_of_medians() -> None:
    found = ratio_of([(1.0, 10.0), (2.0, 4.0), (3.0, 3.0)])  # ratios 10, 2, 1; medians 2 and 4
    assert (found.base, found.other, found.ratio, found.low, found.high, found.pairs) == (2.0, 4.0, 2.0, 1.5, 6.0, 3)


def test_works_are_measured_in_turn_and_repeated_until_they_last() -> None:
    now, calls = 0.0, []

    def spend(name: str, seconds: float) -> None:
        nonlocal now
        now += seconds
        calls.append(name)

    found = in_pairs(lambda: spend("a", 0.004), lambda: spend("b", 0.008), 3, lambda: now)
    repeats = 6  # .02 s is five times .004 s, and one more
    assert calls == ["a", "b", "a", *(["a"] * repeats + ["b"] * repeats) * 3]
    np.testing.assert_allclose([found.base, found.other, found.ratio], [0.004, 0.008, 2.0])


def test_the_slope_of_a_power() -> None:
    sizes = [30, 60, 125, 1000]
    assert slope(sizes, [5 * size**1.5 for size in sizes]) == pytest.approx(1.5)
    assert slope([1, 10, 100], [1, 100, 100]) == pytest.approx(1.0)  # the line between, not through, the points


def test_vectors_with_a_common_mean_have_the_statistics_of_tas_b() -> None:
    vectors = contexts("clustered, common mean", 4, 59, 768)
    assert np.abs(np.linalg.norm(vectors, axis=2) - 10).max() < 1
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    assert np.linalg.norm(vectors.mean(axis=1), axis=1) == pytest.approx(9, abs=0.3)
    alike = np.einsum("bid,bjd->bij", centred, centred) > 5  # of one cluster about 9.5, of two about 0
    assert (alike.sum(axis=2) == 12).all()


def test_made_up_vectors() -> None:
    clustered, again = (contexts("clustered", 2, 60, 64, seed=5) for _ in range(2))
    assert clustered.shape == (2, 61, 64)
    assert clustered.dtype == np.float32
    assert clustered.tobytes() == again.tobytes()
    assert clustered.tobytes() != contexts("clustered", 2, 60, 64, seed=6).tobytes()
    np.testing.assert_allclose(np.linalg.norm(clustered, axis=2), 1.0, rtol=1e-5)
    # random neighbours are mutual too (similarities are symmetric), but only a topic's have neighbours in common
    shared = [
        np.sort(reference.jaccard_similarity(made[0], RnnParams(k=10), range(61)), axis=1)[:, -5].mean()
        for made in (clustered, contexts("random", 2, 60, 64, seed=5))
    ]
    assert shared[0] > 1.5 * shared[1]


def test_a_run_from_file_to_file() -> None:
    found = file_to_file(queries=5, depth=20, context=10, dimension=8, times=1)
    assert list(found) == ["read_s", "rerank_s", "write_s", "total_s", "processor_s"]
    assert min(found.values()) > 0


def test_a_device_beside_the_processor() -> None:
    pytest.importorskip("sentence_transformers")
    rows = gpu.gpu("cpu", (10,), 8, ((1, 64),), 3, 1)
    assert [row["work"] for row in rows] == ["cross-encoder", "training step"]
    for row in rows:
        assert (row["device"], row["pairs"]) == ("cpu", 1)
        assert min(row["cpu_ms"], row["device_ms"]) > 0
        assert row["apart"] < 1e-4


@pytest.mark.long
def test_documents_are_encoded_as_on_a_gpu_beside_bare_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "QUICK", TINY)
    rows = bench("device-encoding", quick=True, device="cpu")["parts"]["device-encoding"]["rows"]
    models = [name for kind, name in ENCODERS[::-2] if installed(kind, name)]
    assert [*dict.fromkeys(row["model"] for row in rows)] == [
        *models,
        *["1 x 128, made up"] * ("splade-tiny" in models),
    ]
    assert len(rows) == (len(models) + ("splade-tiny" in models)) * (1 + has_bfloat16())
    for row in rows:
        assert row["device"] == "cpu"
        assert 0 < row["low"] <= row["ratio"] <= row["high"]
        assert row["bound"] == pytest.approx(1.11, abs=0.01)


def test_without_a_gpu_nothing_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(InputError, match=r"--device cuda: torch .* has no such device here"):
        main(["--only", "gpu"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--quick", "--device", "cpu"], "--device: is for the part gpu, which is not measured; expected --only gpu"),
        (["--only", "kernel", "--device", "cuda"], "--device: is for the part gpu, which is not measured"),
        (["--only", "gpu", "--documents", "9"], "--documents: is for the part graph-size, which is not measured"),
    ],
)
def test_what_no_part_reads_is_refused(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=said):
        main(argv)
    assert capsys.readouterr().out == ""


def test_python_measures_what_the_command_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "QUICK", TINY)
    found = bench("slope", quick=True, pairs=2)
    assert list(found["parts"]) == ["slope"]
    assert found["sizes"]["pairs"] == 2
    with pytest.raises(
        InputError, match=r"^only=kernal: no such part; did you mean kernel\?; documents: is for the pa"
    ):
        bench(["kernal"], documents=[9])


def test_a_corpus_repeats_its_block_with_shifted_dimensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnnreranker.lab.bench.corpus.BLOCK", 40)
    path = write_corpus(tmp_path, 100, 8)
    matrix = np.load(path)
    assert (matrix.shape, matrix.dtype) == ((100, 8), np.float16)
    np.testing.assert_array_equal(matrix[80:], np.roll(matrix[:20], 2, axis=1))
    found = rerank_corpus(str(path), queries=2, depth=30, threads=1)
    assert sorted(found) == ["first", "most", "warm"]


def test_made_up_documents_stand_in_topics() -> None:
    """Whatever block they are made in, and with about 64 others of a topic."""
    whole = np.concatenate([documents(first, 500, 2000, 32) for first in range(0, 2000, 500)])
    np.testing.assert_array_equal(whole[500:1000], documents(500, 500, 2000, 32))
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-6)
    products = whole @ whole.T
    near = np.sort(products, axis=1)[:, -17:-1]
    assert near.min() > np.median(products) + 0.2


def test_a_graph_is_measured_at_the_sizes_that_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json"
    monkeypatch.setattr(benchmark, "QUICK", TINY)
    monkeypatch.setattr(graph_size, "APPROXIMATE", 300)
    assert main(["--quick", "--only", "graph-size", "--documents", "300", "--output", str(path)]) == 0
    (made,) = read_records(path)
    assert made.name == "performance-quick-graph-size"
    row, other = made.outcome["parts"]["graph-size"]["rows"]
    assert (row["documents"], row["K"], row["search"], row["recall"], row["candidates"]) == (300, 16, "exact", 1.0, 60)
    assert (other["documents"], other["search"], other["graph_MB"]) == (
        300,
        "ivf",
        pytest.approx(row["graph_MB"], rel=0.1),
    )
    assert 0.95 <= other["recall"] <= 1
    assert other["processor_s"] > 0
    assert row["graph_MB"] > 300 * 16 * 6 / 1e6
    assert row["resident_MB"] > 1


def test_the_most_memory_while_something_runs() -> None:
    def work() -> None:
        held = np.ones(60 * 2**17)  # 60 MB, more than malloc takes of what was freed before
        sum(float(held[start : start + 1000].sum()) for start in range(0, held.size, 1000))

    try:
        before, most = fresh_process.most_anonymous(work)
    except UnavailableError as error:
        pytest.skip(str(error))
    assert 50 < most - before < 100


def test_a_process_that_fails() -> None:
    with pytest.raises(UnavailableError, match=r"bench\.fresh_process\.nothing failed .* AttributeError: .*'nothing'"):
        fresh_process.in_fresh_process("rnnreranker.lab.bench.fresh_process", "nothing")


def test_a_quick_look_ends_in_time_and_names_what_it_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "QUICK", TINY)
    monkeypatch.setattr(benchmark, "QUICK_SECONDS", -1)
    assert main(["--quick", "--output", str(tmp_path / "quick.json")]) == 0
    assert read_records(tmp_path / "quick.json")[0].outcome["parts"] == {}
    assert re.search(
        r"left out, as -1 seconds had passed: kernel, .*, gather, question; --only NAME", capsys.readouterr().err
    )
    assert main(["--quick", "--only", "slope"]) == 0  # what is asked for is measured
    assert "left out" not in capsys.readouterr().err


def test_made_runs_have_scores_that_tell_more_than_their_order() -> None:
    scores = run_scores(3, 60)
    assert why_useless(scores, np.arange(4) * 60) is None
    assert (np.diff(scores.reshape(3, 60)) < 0).all()
    np.testing.assert_array_equal(scores, scores.round(4))
