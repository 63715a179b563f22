"""The request of the command `serve`, and the limits of its clients."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import MISSING, dataclass, field
from pathlib import Path

from rnnreranker.base.errors import argument, refuse
from rnnreranker.base.settings import Params, Request, setting
from rnnreranker.data.names import BUILT_IN, ENCODER, INDEX, QRELS, TOPICS
from rnnreranker.evaluate.protocols import protocol_setting

LOOPBACK = "127.0.0.1"
TOKEN = "RNNRERANKER_TOKEN"  # in the environment


@dataclass(frozen=True)
class Limits(Params):
    """The limits of a request; beyond them the answer is 400, 408, 413 or 429 and a sentence."""

    max_body: int = setting(4 * 2**20, "bytes of a request", at_least=1024)
    max_candidates: int = setting(1000, "candidates of a query, also those given", at_least=1)
    max_work: int = setting(20_000_000, "context × k × k_exp or probes, the larger, of all rerankers", at_least=1)
    max_explained: int = setting(200, "context of an explanation", at_least=1)
    max_texts: int = setting(200, "texts given, which are encoded", at_least=1)
    max_characters: int = setting(8192, "characters of a query, and of a text given", at_least=1)
    max_seconds: float = setting(30.0, "until a request is answered", above=0)
    max_waiting: int = setting(256, "requests at work or waiting", at_least=1)


@dataclass(frozen=True)
class ServeRequest(Request):
    """A server.

    Attributes:
        host, port: to listen on; 0 = any free port.
        token: the clients' bearer token; None = none, on loopback only.
        topics, qrels: of the page, names or files; a built-in collection has its own.
        protocol: None = that of the judgements, see `protocol_of`.
    """

    index: str = setting(MISSING, INDEX)
    mcp: bool = setting(False, "tools for language models, on stdin and stdout")
    host: str = setting(LOOPBACK, "where to listen; other hosts need --token")
    port: int = setting(8000, "0: any free one")
    token: str | None = setting(None, f"bearer token of clients, 8 characters or more (or {TOKEN} in the environment)")
    topics: str | None = setting(None, f"topics that the page offers: {TOPICS} (default of pydoc: its own)")
    qrels: str | None = setting(None, QRELS)
    measures: str = setting("nDCG@10 RR@10 R@100", "of judged topics")
    protocol: str | None = protocol_setting(metavar="NAME")
    encoder: str | None = setting(None, ENCODER)
    limits: Limits = field(default_factory=Limits)

    @property
    def name(self) -> str:
        """The index as clients see it: the last name of a path."""
        return Path(self.index).absolute().name or self.index

    @property
    def judged(self) -> tuple[str | None, str | None]:
        own = self.index if self.index in BUILT_IN and self.topics is None and self.qrels is None else None
        return self.topics or own, self.qrels or own

    def check(self) -> None:
        """Raises InputError for a port outside of 0 to 65535, other machines without a token, judgements without
        topics.
        """
        from rnnreranker.evaluate.measures import parse_measures

        refuse(
            (not 0 <= self.port < 2**16, f"{argument('port', self.port)}: expected a number in [0, 65535]"),
            (
                not is_local(self.host) and self.token is None,
                f"{argument('host', self.host)}: other machines could search this index; give {argument('token')} "
                f"WORD, which clients must send, or leave {argument('host')} out",
            ),
            (
                self.token is not None and not re.fullmatch(r"[!-~]{8,}", self.token),
                f"{argument('token')}: expected 8 or more ASCII characters without spaces",
            ),
            (
                self.qrels is not None and self.judged[0] is None,
                f"{argument('qrels')} judges topics: give {argument('topics')} too",
            ),
        )
        parse_measures(self.measures)


def is_local(host: str) -> bool:
    """Whether a host is this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
