"""What a run was made of and with, as a file of ir_metadata beside it: https://www.ir-metadata.org.

The six components of PRIMAD: platform, research goal, implementation, method, actor, data. The file says nothing of who
made the run but what `RNNRERANKER_ACTOR` says, and of a path on this machine the last name alone.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files import first_line, write_atomically
from rnnreranker.base.files.atomic import STDOUT
from rnnreranker.base.files.reading import is_elsewhere, local_name
from rnnreranker.base.process.machine import distribution, memory_gb, processor
from rnnreranker.base.record import commit, versions
from rnnreranker.base.written_form import Written
from rnnreranker.data.irds import ir_datasets_id
from rnnreranker.parts.base import parts_of

if TYPE_CHECKING:
    from rnnreranker.search.pipeline import Pipeline
    from rnnreranker.search.request import SearchRequest

SUFFIX = ".ir-metadata.yml"
ENDINGS = (".txt", ".trec", ".run", ".tsv", ".res")  # of runs, which the name of the file lacks
SCHEMA, RUN_VERSION = 0.1, 1.0
ACTOR = "RNNRERANKER_ACTOR"  # in the environment: `team=…,name=…`
OF_ACTOR = ("name", "orcid", "team", "fields", "mail", "role", "degree", "github", "twitter")
TOOLKITS = ("rnnreranker", "pyserini")


@dataclass(frozen=True)
class OfCommand:
    """What a command was asked for besides its request: the words after its name, judgements and measures."""

    words: Sequence[str]
    qrels: str | None = None
    measures: str = ""
    protocol: str = ""


def file_beside(run: str | os.PathLike[str]) -> Path | None:
    """The file beside a run: `run.ir-metadata.yml` of `run.txt` and `run.txt.gz`; None of stdout, a device, a pipe."""
    path = Path(run)
    if os.fspath(run) == STDOUT or (path.exists() and not path.is_file()):
        return None
    name = path.name.removesuffix(".gz")
    stem = name.removesuffix(next((ending for ending in ENDINGS if name.endswith(ending)), ""))
    return path.with_name((stem or name) + SUFFIX)


def actor() -> dict[str, Any]:
    """Who makes the run, of RNNRERANKER_ACTOR; empty where nothing is said.

    Raises:
        InputError: another form, or something that ir_metadata does not know of an actor.
    """
    if not (said := os.environ.get(ACTOR)):
        return {}
    own = Written.read(f"actor:{said}").params
    if unknown := [name for name in own if name not in OF_ACTOR]:
        raise InputError(f"{ACTOR}={said}: {unknown[0]}: {nearest(unknown[0], OF_ACTOR)}")
    if not own:
        raise InputError(f"{ACTOR}={said}: expected KEY=VALUE,KEY=VALUE, keys of {', '.join(OF_ACTOR)}")
    values = {name: str(value) for name, value in own.items()}
    return values | ({"fields": values["fields"].split(";")} if "fields" in values else {})


def write_ir_metadata(path: Path, tag: str, asked: OfCommand, request: SearchRequest, work: Pipeline) -> None:
    """Write the file; tag: of the run, work: what made it; InputError: it cannot be written, and as `actor`."""
    import yaml

    about = {
        "schema-version": SCHEMA,
        "run-version": RUN_VERSION,
        "tag": tag,
        "platform": _platform(work),
        "research goal": _research_goal(asked, request, work),
        "implementation": _implementation(asked.words),
        "method": {"automatic": True, "retrieval": stages(request, work)},
        "actor": actor(),
        "data": _data(asked, request, work),
    }
    text = yaml.safe_dump(about, sort_keys=False, allow_unicode=True, width=4096)
    with write_atomically(path) as stream:
        stream.write(text.encode())


def stages(request: SearchRequest, work: Pipeline) -> list[dict[str, Any]]:
    """The methods in their order, each with its settings and the name of what it reranks, expands or fuses."""
    entries: list[dict[str, Any]] = []

    def add(name: str, method: str, params: Mapping[str, Any], **others: Any) -> str:
        own = name if all(one["name"] != name for one in entries) else f"{name} {len(entries) + 1}"
        known = {key: local_name(value) for key, value in params.items() if value is not None}
        entries.append({"name": own, **({"method": method} if method else {}), **({"params": known} if known else {})})
        entries[-1] |= {key.replace("_", " "): value for key, value in others.items() if value}
        return own

    def of(method: Any, **others: Any) -> str:
        kind = type(method)
        source = {"from": getattr(method, "source", None), "queries": getattr(method, "queries", None)}
        texts = {key: value for key, value in source.items() if isinstance(value, str)}
        return add(kind.name, f"{kind.__module__}.{kind.__qualname__}", method.params.to_dict() | texts, **others)

    if work.retrievers:
        before = []
        for retriever in work.retrievers:
            last = of(retriever, encoder=_encoder(retriever, request, work), depth=work.depth)
            if retriever.feedback is not None:
                last = of(retriever.feedback, searches_again=last)
            before.append(last)
        if len(before) > 1:
            how = work.fusion.to_dict()
            last = add(how.pop("fuse"), "rnnreranker.runs.fuse.fuse", how, interpolates=before)
    else:
        last = add(_given_name(request), "", {}, run=_given_name(request), depth=work.depth)
    if work.expander is not None:
        last = of(work.expander, expands=last)
    for reranker in work.rerankers:
        last = of(reranker, reranks=last)
    if work.passages is not None:
        how = work.passages.to_dict()
        add(how.pop("aggregate"), "rnnreranker.runs.passages", how, aggregates=last)
    return entries


def shown_command(words: Sequence[str]) -> str:
    """The command with these words, as a shell takes it, without the folders of this machine.

    >>> shown_command(["--run", "/home/ada/a.txt", "--rerank", "scorer:model=/home/ada/m", "--query", "/ a"])
    "python -m rnnreranker.search --run a.txt --rerank scorer:model=m --query '/ a'"
    """
    shown: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if before == "--query" or word.startswith("--query="):
            shown.append(word)
        elif is_elsewhere(word):
            shown.append(local_name(word))
        else:
            shown.append("".join(map(local_name, re.split(r"(=|,|\+|(?<=\w):(?=[/~]))", word))))
    return shlex.join(["python", "-m", "rnnreranker.search", *shown])


def _platform(work: Pipeline) -> dict[str, Any]:
    hardware: dict[str, Any] = {
        "cpu": {
            "model": processor() or platform.processor() or platform.machine(),
            "architecture": platform.machine(),
            "operation mode": f"{64 if sys.maxsize > 2**32 else 32}-bit",
            "number of cores": cores(),
        }
    }
    if memory := memory_gb():
        hardware["ram"] = f"{memory:.0f} GB"
    if work.devices is not None and any(name.startswith("cuda") for name in work.devices.names):
        import torch

        first = next(name for name in work.devices.names if name.startswith("cuda"))
        gpu = torch.cuda.get_device_properties(torch.device(first))
        hardware["gpu"] = {"architecture": gpu.name, "memory": f"{gpu.total_memory / 1e9:.0f} GB"}
    version_of = versions()
    pinned = {name: f"{name}=={version}" for name, version in version_of.items()}
    return {
        "hardware": hardware,
        "operating system": {
            "platform": platform.system(),
            "kernel": platform.release(),
            "distribution": distribution(),
        },
        "software": {
            "libraries": {
                "python": [
                    f"python=={platform.python_version()}",
                    *(one for name, one in pinned.items() if name not in TOOLKITS),
                ]
            },
            "retrieval toolkit": [pinned[name] for name in TOOLKITS if name in pinned],
        },
    }


def _research_goal(asked: OfCommand, request: SearchRequest, work: Pipeline) -> dict[str, Any]:
    evaluation: dict[str, Any] = {}
    if asked.qrels:
        evaluation |= {"reported measures": asked.measures.split(), "protocol": asked.protocol}
    if work.rerankers or work.expander:  # the first stage, by the tag that it has or would have
        first = work.retrieved_by and f"{work.retrieved_by}.none"
        if baseline := first or _given_tag(request):
            evaluation["baseline"] = [baseline]
    return {"evaluation": evaluation} if evaluation else {}


def _implementation(words: Sequence[str]) -> dict[str, Any]:
    source: dict[str, Any] = {"lang": ["python"]}
    if made_by := commit():
        source["commit"] = made_by
    return {"executable": {"cmd": shown_command(words)}, "source": source}


def _data(asked: OfCommand, request: SearchRequest, work: Pipeline) -> dict[str, Any]:
    settings, name = work.index.settings, local_name(work.index.name)
    collection = {"name": local_name(settings.get("documents") or name)}
    if asked.qrels:
        collection["qrels"] = local_name(asked.qrels)
    if isinstance(request.topics, str | Path):
        collection["topics"] = local_name(request.topics)
        if known := ir_datasets_id(str(request.topics)):
            collection["ir_datasets"] = known
    index = {"name": name, "source": "index", "parts": list(work.index.parts)}
    if fingerprint := settings.get("fingerprint"):
        index["fingerprint"] = fingerprint
    other = [index]
    if request.encoded_queries:
        other.append({"name": local_name(request.encoded_queries), "source": "vectors of the queries"})
    return {"test collection": collection, "other": other}


def _encoder(retriever: Any, request: SearchRequest, work: Pipeline) -> str:
    """The name of the encoder of a retriever's queries; "" of one that has none, and of encoded queries."""
    for part in sorted(parts_of(retriever.needs)):
        own = work.index.described(part).get("encoder")
        if part == "dense" and (request.encoded_queries or request.encoding.encoder):
            return "" if request.encoded_queries else str(local_name(request.encoding.encoder))
        if isinstance(own, dict) and own.get("name"):
            return str(local_name(own["name"]))
    return ""


def _given_name(request: SearchRequest) -> str:
    return Path(request.run).name if isinstance(request.run, str | Path) else "run"


def _given_tag(request: SearchRequest) -> str:
    """The tag of a given run in TREC format; "" of another."""
    words = first_line(request.run).split() if isinstance(request.run, str | Path) else []
    return words[5] if len(words) == 6 else ""
