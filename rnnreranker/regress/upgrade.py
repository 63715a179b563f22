"""`regress --upgrade FILE`: a spec, or entries that specs share, with today's names; comments and anchors stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text
from rnnreranker.base.files.yaml_files import parse_yaml
from rnnreranker.regress.specs.checks import SCHEMA

ROCCHIO = {
    **{"rocchio_topk": "fb_docs", "rocchio_bottomk": "fb_bottom_docs", "prf_depth": "fb_depth"},
    **{"rocchio_alpha": "fb_alpha", "rocchio_beta": "fb_beta", "rocchio_gamma": "fb_gamma"},
}
AVERAGE = {"prf_depth": "fb_docs"}
COLBERT = {"prf_clusters": "fb_clusters", "prf_embeddings": "fb_embeddings"}
COLBERT |= {"prf_depth": "fb_docs", "prf_expansion_weight": "fb_expansion_weight"}
CROSS = {"cross_max_length": "max_length"}
SETTINGS: Mapping[str, Mapping[str, str]] = {  # method → its settings of an earlier name → their names
    "impact": {"impact_encoder": "encoder"},
    "late": {"late_search": "search", "token_depth": "depth", "token_recall": "recall_sample"},
    "tf-idf": {"tf_idf": "variant"},
    "rrf": {"rrf_k": "k"},
    "rocchio": ROCCHIO,
    "average": AVERAGE,
    "colbert": COLBERT,
    "collective": {**COLBERT, "prf_positives": "positives"},
    "cross-encoder": {**CROSS, "cross_encoder": "model"},
    "ensemble": {**CROSS, "cross_encoders": "models"},
    "teacher": {"teacher_model": "model"},
    "term-weight": {"term_scale": "scale"},
    "lexboost": {"lexboost_k": "k", "lexboost_lambda": "lam"},
    "mmr": {"mmr_lambda": "lam"},
    "regularise": {"regularise_alpha": "alpha", "regularise_k": "k"},
    "scorer": {"scorer_model": "model"},
    "zhong": {"zhong_k1": "k1", "zhong_k2": "k2", "zhong_lambda": "lam"},
    "gar": {"expand_k": "k", "expand_hits": "budget", "gar_batch": "batch"},
    "ladr": {"expand_k": "k", "expand_hits": "hits", "ladr": "variant", "ladr_hops": "hops", "ladr_depth": "depth"},
    "neighbours": {
        **{"expand_k": "k", "expand_depth": "depth", "expand_below": "below"},
        **{"neighbours": "k", "neighbours_of": "by", "graph_search": "search"},
    },
    "dual": {"degrees": "label_scale"},
}
RERANKERS: Mapping[str, tuple[Mapping[str, str], Mapping[str, object]]] = {  # now prf: renamed settings, usual ones
    "prf-rocchio": (ROCCHIO, {"feedback": "rocchio", "fb_docs": 5, "fb_alpha": 0.4, "fb_beta": 0.6}),
    "prf-average": (AVERAGE, {"feedback": "average", "fb_docs": 3}),
    "colbert-prf": (COLBERT, {"feedback": "colbert", "context": 1000}),
}


def upgrade(path: Path) -> tuple[str, list[str]]:
    """The text of a file with today's names, and what was changed, each with file:line.

    What is written otherwise today in more than a name is left as it is: the spec's own check says so, by line.

    Raises:
        InputError: no such file, not YAML, another schema.
    """
    text = read_text(path, "spec")
    content, _, strange = parse_yaml(text, path)
    if strange or not isinstance(content, dict):
        problems = [f"{path}:{line}: {said}" for said, line in strange]
        raise InputError("; ".join(problems) or f"{path}:1: expected a mapping with schema, name, …")
    if content.get("schema", SCHEMA) != SCHEMA:
        raise InputError(f"{path}: schema {content['schema']!r}; expected {SCHEMA}")
    changes = _Changes()
    if (root := yaml.compose(text, yaml.SafeLoader)) is not None:
        changes.walk(root, "")
    for start, end, new in sorted(changes.spans.values(), reverse=True):
        text = text[:start] + new + text[end:]
    return text, [f"{path}:{line}: {said}" for line, said in sorted(set(changes.said))]


class _Changes:
    """Spans of a text and what stands there today, each once where an alias repeats it."""

    def __init__(self) -> None:
        self.spans: dict[tuple[int, int], tuple[int, int, str]] = {}
        self.said: list[tuple[int, str]] = []

    def walk(self, node: yaml.Node, under: str) -> None:
        """Rename in a node that stands under a key, and in all within it."""
        for one in node.value if isinstance(node, yaml.SequenceNode) else ():
            self.walk(one, under)
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            settings = SETTINGS.get(key.value, {})
            if under == "rerank" and key.value in RERANKERS:
                settings, usual = RERANKERS[key.value]
                self._to_prf(key, value, usual, settings)
            for name, _ in value.value if isinstance(value, yaml.MappingNode) else ():
                if name.value in settings:
                    self._put(name, settings[name.value])
                    self.said.append((name.start_mark.line + 1, f"{key.value}: {name.value} → {settings[name.value]}"))
            self.walk(value, key.value)

    def _put(self, node: yaml.Node, new: str) -> None:
        start, end = node.start_mark.index, node.end_mark.index
        self.spans[start, end] = start, end, new

    def _to_prf(
        self, key: yaml.Node, value: yaml.Node, usual: Mapping[str, object], settings: Mapping[str, str]
    ) -> None:
        """A reranker that is `prf` today, with what was usual of it before its own settings."""
        self._put(key, "prf")
        self.said.append((key.start_mark.line + 1, f"{key.value} → prf"))
        own = [name for name, _ in value.value] if isinstance(value, yaml.CollectionNode) else []
        given = {settings.get(name.value, name.value) for name in own}
        added = [f"{name}: {its}" for name, its in usual.items() if name not in given]
        if not own:  # {}, or nothing behind the colon
            start, end = value.start_mark.index, value.end_mark.index
            self.spans[start, end] = start, end, f"{' ' * (start == end)}{{{', '.join(added)}}}"
            return
        sign = ", " if getattr(value, "flow_style", None) else "\n" + " " * own[0].start_mark.column
        start = own[0].start_mark.index
        self.spans[start, start] = start, start, sign.join([*added, ""])
