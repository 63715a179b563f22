"""The bodies of requests and answers: their fields and types; others are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

Number = StrictFloat | StrictInt
Form = StrictStr | dict[str, dict[str, Any] | None]  # of a method: `rnn:k=20`, {"rnn": {"k": 20}}
Count = Annotated[int, Field(strict=True, ge=1)]


Forms = Annotated[list[Form], Field(max_length=10)]


class Body(BaseModel):
    """A body with these fields only."""

    model_config = ConfigDict(extra="forbid")


class SearchBody(Body):
    """A question, or a judged topic, and its search."""

    query: StrictStr | None = Field(None, description="the text of the question")
    topic: StrictStr | None = Field(None, description="the id of a topic, in place of a text")
    retrieve: Form | Forms | None = Field("auto", description="first stage, as of search --retriever")
    fuse: Form | None = Field(None, description="how several retrievers are fused")
    prf: Form | None = Field(None, description="feedback: a second search by the first documents")
    expand: Form | None = Field(None, description="more candidates, from the graph of the index")
    rerank: Form | Forms | None = Field("rnn", description="rerankers in their written form; null = none")
    hits: Count | None = Field(None, description="documents in the output; null = 1000, or the limit below it")
    limit: Annotated[int, Field(strict=True, ge=1, le=1000)] = Field(10, description="results of the answer")


class ExplainBody(SearchBody):
    """A question, and the width of the picture's window."""

    size: Literal["wide", "narrow"] = "wide"


class RerankBody(Body):
    """Candidates to rerank: docids of the index, or vectors with any ids."""

    query: StrictStr | None = Field(None, description="its text is encoded by the encoder of the index")
    query_vector: list[Number] | None = Field(None, description="in place of a text")
    docids: list[StrictStr] | None = Field(None, description="of the index; with vectors: what they are called")
    vectors: list[list[Number]] | None = Field(None, description="of the candidates, in place of those of the index")
    scores: list[Number] | None = Field(None, description="of the first stage, higher is better")
    rerank: Form = Field("rnn", description="rnn with settings, rnn:k=20")
    top_n: Count | None = None


class TextsBody(BaseModel):
    """The request of clients of text-embeddings-inference."""

    query: StrictStr
    texts: list[StrictStr]
    raw_scores: bool = False
    return_text: bool = False
    truncate: bool | None = None
    truncation_direction: Literal["left", "right", "Left", "Right"] | None = None


class DocumentsBody(BaseModel):
    """The request of clients of Cohere (v1 and v2) and Jina."""

    model: StrictStr | None = None
    query: StrictStr
    documents: list[StrictStr | dict[str, Any]]
    top_n: Count | None = None
    return_documents: bool | None = None
    rank_fields: list[StrictStr] | None = None
    truncation: bool | None = None
    return_embeddings: Literal[False] | None = None


class Result(BaseModel):
    """A document of an answer."""

    rank: int
    docid: str
    score: float
    text: str
    now: int | None = Field(None, description="before: its rank after reranking")
    was: int | None = Field(None, description="after: its rank before")
    moved: int | None = Field(None, description="ranks up; null = new")
    grade: int | None = Field(None, description="of a judged topic; null = not judged")


class MeasuredTopic(BaseModel):
    """A measure of a judged topic, with its protocol."""

    measure: str
    protocol: str
    before: float
    after: float


class SearchAnswer(BaseModel):
    """Both runs of a question, and commands to repeat it."""

    query: str
    topic: str | None
    retriever: str
    reranker: str
    candidates: int
    before: list[Result]
    after: list[Result]
    measures: list[MeasuredTopic]
    copy_of: dict[str, str] = Field(serialization_alias="copy")
    milliseconds: float


class ExplainAnswer(BaseModel):
    """A context taken apart, and its picture."""

    svg: str
    elements: dict[int, str] = Field(description="number in the picture → docid")
    parts: list[str] = Field(description="what every score is the sum of")
    candidates: list[dict[str, Any]]
    useless: str


class Reranked(BaseModel):
    """A candidate of `POST /rerank`."""

    index: int = Field(description="where it stood in the request, from 0")
    docid: str | None
    score: float


class RerankAnswer(BaseModel):
    """Candidates, best first."""

    results: list[Reranked]


class DocumentAnswer(BaseModel):
    """A document of the index."""

    docid: str
    text: str


class Health(BaseModel):
    """The state of the server, and its index."""

    status: Literal["ok"] = "ok"
    index: str
    version: str


class Said(BaseModel):
    """The fault of a request, in one sentence."""

    error: str
