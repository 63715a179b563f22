"""A retriever that reads topics and texts: the more words a document shares with the topic, the better."""

from __future__ import annotations

from dataclasses import dataclass

from rnnreranker import Run
from rnnreranker.plugins import Params, Retriever, setting


@dataclass(frozen=True)
class TopicWordsParams(Params):
    """Settings of TopicWords."""

    shortest_word: int = setting(1, "letters of the shortest word that counts", at_least=1)


class TopicWords(Retriever):
    """Scores are numbers of distinct words that stand in the topic and in the document."""

    name = "topic-words"
    needs = frozenset({"topics", "texts"})
    Params = TopicWordsParams

    def retrieve(self, hits: int) -> Run:
        """The documents that share at least one word."""
        documents = {docid: self._words(text) for docid, text in self.inputs.texts.items()}
        found = {}
        for qid, topic in self.inputs.topics.items():
            words = self._words(topic)
            shared = {docid: float(len(words & own)) for docid, own in documents.items()}
            found[qid] = {docid: count for docid, count in shared.items() if count}
        return Run.from_dict(found).head(hits)

    def _words(self, text: str) -> set[str]:
        return {word for word in text.lower().split() if len(word) >= self.params.shortest_word}
