"""The parts of the benchmark: what each is called, what it says, and what it is called with."""

from __future__ import annotations

import time
from typing import Any

from rnnreranker.base.command import cores, progress, say
from rnnreranker.lab.bench.measured_part import BenchPart
from rnnreranker.lab.bench.sizes import ENCODERS, Sizes

# measured only where they are asked for by name
ASKED = GPU, PEERS, WAITING, DEVICES = ("gpu", "peers", "waiting", "device-encoding")
MADE = "graph-size"  # whose graphs are as large as one says


def _contexts(sizes: Sizes) -> tuple[Any, ...]:
    return sizes.contexts, sizes.dimension, sizes.pairs


def _graph(sizes: Sizes) -> tuple[Any, ...]:
    return (sizes.contexts[0], sizes.contexts[-1]), sizes.corpora[0], sizes.dimension, sizes.pairs


PARTS = {
    "kernel": BenchPart(
        "The kernel beside its Gram product",
        "Everything that `rnn_similarity` does for a query, beside the product X Xᵀ of the same N + 1 vectors alone "
        "(numpy's syrk, float32), which no implementation can do without.",
        "kernel_ratios.kernel",
        _contexts,
    ),
    "scale": BenchPart("The default scale", 'scale "minmax" against "none".', "kernel_ratios.scale", _contexts),
    "run": BenchPart(
        "The rank and the score of the run",
        'The default, which takes the ranks and scores of a run and a second probe, against the preset "vectors".',
        "kernel_ratios.first_stage",
        _contexts,
    ),
    "expanding": BenchPart(
        "Candidates from a graph",
        "`--expand` and `--rerank lexboost` of a run in memory, with vectors and a graph (K = 16) in the page cache: "
        "processor microseconds a query, and how many candidates it has after.",
        "expanding.expanding",
        lambda sizes: (sizes.corpora[0], sizes.contexts[-1], sizes.dimension, sizes.pairs),
    ),
    "graph": BenchPart(
        "From a graph of neighbours",
        "`graph_similarity` of the first N documents of a made-up collection with the 16 nearest of each, "
        "beside the product X Xᵀ of their vectors and the query's; `known`: of these 16, those that are candidates. "
        'queries "run": their inner products are those of the run; "none": they are not known. The median, lowest and '
        "highest ratio of fresh processes; `others`: processes that multiply matrices beside it.",
        "graph_ratios.graph",
        lambda sizes: (*_graph(sizes), sizes.times),
    ),
    "graph-threads": BenchPart(
        "Threads, from a graph",
        "Two threads against one, by elapsed time.",
        "graph_ratios.threads",
        _graph,
    ),
    "probes": BenchPart(
        "Ten probes",
        "`jaccard_similarity` of ten probes against one.",
        "kernel_ratios.probes",
        lambda sizes: (sizes.contexts[-1], sizes.dimension, sizes.pairs),
    ),
    "compile": BenchPart(
        "The first call",
        "Elapsed seconds of `import rnnreranker.rnn` and of a first `rnn_similarity` in a fresh process, with an empty "
        "numba cache and with one that an earlier process filled, the kernel being waited for; the processor seconds "
        "of that call; and the elapsed seconds of a first call that, as small work does, waits for nothing.",
        "fresh_process.compiling",
        lambda sizes: (sizes.times,),
    ),
    "memory": BenchPart(
        "Memory of a worker",
        "Anonymous memory (RssAnon) of a fresh process before `jaccard_similarity` of a batch and at most during it; "
        "what is added, divided by the threads. Input vectors are there before.",
        "fresh_process.memory",
        lambda sizes: (sizes.contexts[-1], sizes.dimension),
    ),
    "files": BenchPart(
        "From file to file",
        "Elapsed seconds to read a run in TREC format, rerank the first candidates of every query with float32 vectors "
        "in memory, and write it; one core. Then the processor seconds of all three.",
        "file_to_file.files",
        lambda sizes: (sizes.files, sizes.dimension),
    ),
    "graph-files": BenchPart(
        "From file to file by a graph",
        "The same for 60 candidates, from a graph of the 16 nearest and the scores of the run, beside vectors.",
        "file_to_file.graph_files",
        lambda sizes: (sizes.files, sizes.dimension),
    ),
    "slope": BenchPart(
        "Cost against N",
        "The last row is the slope of the line through the logarithms: 1 is linear in N, 2 quadratic.",
        "kernel_ratios.growth",
        lambda sizes: (sizes.growth, sizes.dimension, sizes.pairs),
    ),
    "corpus": BenchPart(
        "Size of the corpus",
        "Reranking over a float16 matrix on disk, each size in a fresh process, candidates drawn from all of it: "
        "elapsed milliseconds a query the first and the second time, and the most anonymous memory.",
        "corpus.corpus",
        lambda sizes: (sizes.corpora, sizes.corpus_queries, sizes.corpus_depth, sizes.dimension, cores()),
    ),
    "dtype": BenchPart("Type of the vectors", "float16 against float32.", "kernel_ratios.dtype", _contexts),
    "threads": BenchPart(
        "Threads",
        "Two threads against one, by elapsed time; .5 is the most that can be gained.",
        "kernel_ratios.threads",
        _contexts,
    ),
    "labels": BenchPart(
        "Soft labels",
        "Evidence-based labels of a query with one positive from vectors in memory, everything but reading and writing "
        "included, beside the product X Xᵀ of the same N + 1 vectors alone.",
        "labels_and_batches.labels",
        lambda sizes: (sizes.contexts[:2], sizes.dimension, sizes.pairs),
    ),
    "pairs": BenchPart(
        "A cross-encoder",
        "`--rerank cross-encoder` of a query with candidates of 30 to 150 words, by made-up weights, beside "
        "the bare passes of its graph on the same batches of token numbers: `ratio`, of a query after another over the "
        "same candidates, whose tokens are kept; `new_texts`: where every text is new. `of_model`: beside the passes "
        "of the model itself, by torch. Processor seconds, one thread.",
        "pair_scoring.pairs",
        lambda sizes: (sizes.cross_encoders, sizes.scored, sizes.pairs),
    ),
    "encoding": BenchPart(
        "Encoding",
        "Documents of pydoc to vectors (minilm), weights of words (splade-tiny) and vectors of tokens (minilm-tokens), "
        "cutting into tokens and all else included, beside the bare passes of what computes (by) on the same batches "
        "of token numbers: `ratio`. `of_model`: the same beside those of the model itself, by torch. Processor "
        "seconds, one thread.",
        "encoding.encoding",
        lambda sizes: (ENCODERS, sizes.encoded, min(sizes.pairs, 5)),
    ),
    "index-encoding": BenchPart(
        "Encoding an index",
        "A block of documents of pydoc to a file of vectors as `index` makes it, cutting into tokens and all else "
        "included, beside the bare forward passes of what computes (by) on the same batches of token numbers: `ratio`. "
        "`of_model`: the same beside those of the model itself in float32, by torch. `1-cosine`: of the lowest to "
        "the vectors of that, which the index says. Processor seconds, one thread.",
        "index_encoding.index_encoding",
        lambda sizes: (ENCODERS[-1][1], sizes.encoded, min(sizes.pairs, 5)),
    ),
    MADE: BenchPart(
        "Size of the graph",
        "A graph of made-up documents, each the direction of its topic and noise in equal parts, made by one process: "
        "elapsed and processor seconds, recall (of a sample where search is not exact), bytes, and the most resident "
        "memory, mapped files included. In another process: elapsed milliseconds to open it, and microseconds a query "
        "to read the rows of its candidates, drawn from all documents, from files that the system was asked to forget "
        "and again.",
        "graph_size.graph_size",
        lambda sizes: (sizes.graphs, 384, 16, 60, sizes.corpus_queries, cores()),
    ),
    "label-jobs": BenchPart(
        "A job of labels",
        "Joint labels of a run in memory, one positive a query, from the graph of a made-up collection (K = 16) and "
        "the run alone, and of a tenth of the queries from vectors: processor seconds until the file is written, its "
        "size, and anonymous memory (RssAnon) before and at most. The run is there before.",
        "label_jobs.label_jobs",
        lambda sizes: (*sizes.labelled, 384),
    ),
    "collection": BenchPart(
        "A large collection, measured",
        "Every stage at growing sizes, each in a process of its own: to open float16 vectors on disk (`vectors`; disk "
        "with their docids), joint labels of queries with 100 candidates from everywhere in them (`labels`; disk of "
        "their file), a table of all documents in memory and one training step's candidates out of it (`batch`), and "
        "texts of pydoc to MiniLM's vectors (`encode`). Seconds of the work, and anonymous memory (RssAnon) that it "
        "adds; of Dask's workers only the elapsed seconds are known.",
        "collection_size.collection_size",
        lambda sizes: (
            *(sizes.corpora, sizes.corpus_queries, sizes.labelled[1], sizes.corpus_depth, sizes.dimension),
            *(ENCODERS[-1][1], sizes.encoded),
        ),
        (
            (
                "How that grows",
                "What must grow with the documents, by the line between the two largest sizes (`line`: a million "
                "documents more); seconds and files of labels and batches, which hold as many candidates whatever the "
                "size, by the slope of the logarithms (`power`: 0 does not grow, 1 is linear).",
                "computed_size.slopes",
            ),
            (
                "MS MARCO, computed and not measured",
                "By these slopes, to sizes at which nothing was run. `hours` are processor hours divided by the cores "
                "of the machine that measured, or of a larger one (GB: its memory); those of labels divided, too, by "
                "the share that Dask's workers reached. `elapsed_s`: to open the vectors, and for one step's batch. "
                "Texts are taken to be as long as pydoc's. `memory_GB` is of one process, `fits` compares it with the "
                "machine's. What a disk takes that is read at random, because memory is smaller than the vectors, is "
                "not in here; nor is a GPU.",
                "computed_size.computed",
            ),
        ),
    ),
    GPU: BenchPart(
        "On a GPU",
        "What can compute there, by elapsed time, beside the processor with all its cores: "
        "a cross-encoder with made-up weights, and a step of training a query "
        "encoder with made-up weights on 32 queries. `apart` is the largest difference of results.",
        "gpu.gpu",
        lambda sizes: (
            *(sizes.device, sizes.contexts, sizes.dimension, sizes.cross_encoders, sizes.scored),
            min(sizes.pairs, 5),
        ),
    ),
    DEVICES: BenchPart(
        "Encoding as on a GPU",
        "A block of documents of pydoc to a file as `index --device` makes it, by torch: vectors, and weights of "
        "words by a small model and by one with made-up weights; cutting into tokens and all else included, "
        "beside the bare forward passes of the model on the same batches of token numbers: `ratio`. Processor "
        "seconds of one thread, on a GPU elapsed ones.",
        "device_encoding.device_encoding",
        lambda sizes: (
            *(ENCODERS[::-2], (sizes.cross_encoders[-1][0], 2 * sizes.cross_encoders[-1][1]), sizes.encoded),
            *(min(sizes.pairs, 5), sizes.device or "cpu"),
        ),
    ),
    PEERS: BenchPart(
        "Beside peers",
        "The same tasks by other packages where they are installed (the extra `peers`), each held to one thread: "
        "processor seconds, of LADR, GAR, PRF and MMR those of a query, and the most memory of a fresh process "
        "that does nothing else. The MMR of pyterrier_dr maps similarities in another way; the RR of pytrec_eval is "
        "not cut and left out of the difference. What is promised and peers do not do: products of PRF are summed in "
        "float64, row by row, so that equal vectors tie; an index of BM25 has its texts checked, compressed and kept, "
        "and survives a kill; scores of BM25 are summed in float64.",
        "peers.measure.peers",
        lambda sizes: (sizes.peers, min(sizes.pairs, 5)),
    ),
    WAITING: BenchPart(
        "Everyday commands",
        "Elapsed seconds of commands in fresh processes (`total`), over pydoc's first documents, files being warm, "
        "beside what they cannot do without (`needed`): to start Python with NumPy (`python`), to import other "
        "libraries (`imports`), passes of the model, in training backwards and the optimizer's steps too (`passes`), "
        "and to read the files that they are given once (`files`). `phases`: the longest, seconds; passes are among "
        "them. The first index on a machine makes the encoder's graph, by torch, which later ones read.",
        "waiting.waiting",
        lambda sizes: (sizes.encoded, sizes.times),
    ),
    "gather": BenchPart(
        "A batch of training",
        "Elapsed milliseconds to gather the distinct document vectors of 32 queries' candidates from a float16 table "
        "in memory, warm.",
        "labels_and_batches.gathering",
        lambda sizes: (sizes.corpora[:2], sizes.contexts[-1], sizes.dimension, sizes.pairs),
    ),
    "question": BenchPart(
        "One question",
        "Elapsed seconds of `search --query` in fresh processes over an index of pydoc's first documents with vectors, "
        "SPLADE's weights and BM25, everything being on disk, in turn with `import torch`. `all`: the default, which "
        "fuses the three. A question is new, or was asked before: then its encoding is `kept`; `by the model`: with "
        "`--encoder`. Files are warm, or dropped from the page cache before each process: those of Python, of the "
        "packages and of the index; what running processes have mapped stays there.",
        "one_question.one_question",
        lambda sizes: (sizes.encoded, min(sizes.pairs, sizes.questions)),
    ),
}


def measure(names: list[str], sizes: Sizes, seconds: float | None = None) -> dict[str, dict[str, Any]]:
    """The named parts in the order of the table: {name: {title, note, rows}}, with the kernels loaded before.

    seconds: when so many have passed, no further part is begun, and those left out are named in one line.
    """
    from rnnreranker.rnn import chunks
    from rnnreranker.rnn.graph import similarity as graph_similarity

    begun = time.perf_counter()
    chunks.ENGINES.now(), graph_similarity.ENGINES.now()
    chosen = [name for name in PARTS if name in names]
    parts_measured: dict[str, dict[str, Any]] = {}
    late: list[str] = []
    for name in progress(chosen, unit="parts", what="bench"):
        if seconds is not None and time.perf_counter() - begun > seconds:
            late.append(name)
            continue
        part, rows = PARTS[name], PARTS[name].measure(sizes)
        parts_measured[name] = {"title": part.title, "note": part.note, "rows": rows}
        if part.derived:
            parts_measured[name]["derived"] = part.compute(rows)
    if late:
        say(f"left out, as {seconds:g} seconds had passed: {', '.join(late)}; --only NAME measures a part")
    return parts_measured
