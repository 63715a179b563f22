"""Two small collections made from word lists: `texts`, whose index has every part, and `passages`, for MaxP.

Nothing here reads a file or depends on the version of Python: the same words come out everywhere.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

SUBJECTS = {
    "volcano": "lava eruption ash crater magma mountain heat rock smoke island",
    "bread": "flour dough yeast oven crust bake loaf wheat kitchen knead",
    "chess": "king queen pawn board opening endgame player move check bishop",
    "whale": "ocean blubber calf song migration plankton fin harpoon pod dive",
    "violin": "string bow orchestra concert melody tune wood varnish soloist practice",
    "satellite": "orbit launch rocket antenna signal earth camera panel space station",
    "vaccine": "immune virus dose antibody trial infection hospital needle disease doctor",
    "glacier": "ice valley snow melt climate river moraine crevasse cold lake",
    "elections": "vote ballot candidate party campaign poll parliament district majority debate",
    "beekeeping": "hive honey queen wax nectar swarm pollen flower smoke colony",
    "railway": "train track locomotive station signal bridge tunnel steam passenger freight",
    "pottery": "clay kiln glaze wheel vase fire ceramic bowl shape heat",
}
COMMON = [
    "the",
    "report",
    "describes",
    "how",
    "people",
    "often",
    "study",
    "this",
    "and",
    "what",
    "they",
    "found",
    "about",
    "it",
    "in",
    "recent",
    "years",
]
DOCUMENTS, QUERIES, PASSAGES = 192, 48, 3  # passages of a document of the second collection


def _sentence(rng: np.random.Generator, subject: str, other: str, words: int) -> str:
    own, strange = SUBJECTS[subject].split(), SUBJECTS[other].split()
    drawn = [subject if rng.random() < 0.15 else str(rng.choice(own)) for _ in range(words)]
    drawn += [str(rng.choice(strange)) for _ in range(words // 4)] + [str(rng.choice(COMMON)) for _ in range(words)]
    return " ".join(str(word) for word in rng.permutation(drawn))


def documents() -> dict[str, str]:
    """DOCUMENTS texts of one to three sentences each; the subject of number n is n modulo the number of subjects."""
    rng, names = np.random.default_rng(11), list(SUBJECTS)
    texts = {}
    for number in range(DOCUMENTS):
        subject, other = names[number % len(names)], names[int(rng.integers(len(names)))]
        count = 1 + int(rng.integers(3))
        texts[f"d{number:03}"] = ". ".join(_sentence(rng, subject, other, 6) for _ in range(count))
    return texts


def topics() -> dict[str, str]:
    """QUERIES texts of two to four words of one subject; the first half is for training."""
    rng, names = np.random.default_rng(12), list(SUBJECTS)
    found = {}
    for number in range(QUERIES):
        words = SUBJECTS[names[number % len(names)]].split()
        drawn = rng.choice(words, size=2 + int(rng.integers(3)), replace=False)
        found[f"q{number:02}"] = " ".join(map(str, drawn))
    return found


def qrels() -> list[tuple[str, str, int]]:
    """Grade 2 for documents of the subject with two words of the query or more, 1 with one word, 0 for three others."""
    texts, names, rng = documents(), list(SUBJECTS), np.random.default_rng(13)
    judged = []
    for place, (qid, query) in enumerate(topics().items()):
        words = set(query.split())
        for number, (docid, text) in enumerate(texts.items()):
            if number % len(names) == place % len(names) and (common := len(words & set(text.split()))):
                judged.append((qid, docid, min(common, 2)))
        judged += [(qid, f"d{number:03}", 0) for number in sorted(rng.choice(DOCUMENTS, 3, replace=False))]
    seen: dict[tuple[str, str], int] = {}
    for qid, docid, grade in judged:
        seen.setdefault((qid, docid), grade)
    return [(qid, docid, grade) for (qid, docid), grade in seen.items()]


def write(folder: Path) -> None:
    """documents.jsonl, passages.jsonl, topics.tsv, train.tsv, test.tsv and qrels.txt of the world."""
    folder.mkdir(parents=True, exist_ok=True)
    texts, queries = documents(), topics()
    whole = [json.dumps({"id": docid, "text": text}) for docid, text in texts.items()]
    (folder / "documents.jsonl").write_text("\n".join(whole) + "\n")
    parts = [
        json.dumps({"id": f"{docid}#{part}", "text": " ".join(words[part::PASSAGES])})
        for docid, words in ((docid, text.split()) for docid, text in texts.items())
        for part in range(PASSAGES)
    ]
    (folder / "passages.jsonl").write_text("\n".join(parts) + "\n")
    lines = [f"{qid}\t{text}\n" for qid, text in queries.items()]
    (folder / "topics.tsv").write_text("".join(lines))
    (folder / "train.tsv").write_text("".join(lines[: QUERIES // 2]))
    (folder / "test.tsv").write_text("".join(lines[QUERIES // 2 :]))
    (folder / "qrels.txt").write_text("".join(f"{qid} 0 {docid} {grade}\n" for qid, docid, grade in qrels()))
