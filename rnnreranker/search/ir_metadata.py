"""The ir_metadata file of a run: https://www.ir-metadata.org.

Six components (PRIMAD): platform, research goal, implementation, method, actor, data. The actor comes from
`RNNRERANKER_ACTOR`; a path on this machine appears by its last name.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files import STDOUT, first_line, write_atomically
from rnnreranker.base.process.machine import memory_gb
from rnnreranker.base.record import commit, versions
from rnnreranker.base.written_form import Written
from rnnreranker.data.irds import ir_datasets_id
from rnnreranker.parts.base import parts_of

if TYPE_CHECKING:
    from rnnreranker.search.pipeline import Pipeline
    from rnnreranker.search.request import OutputRequest

SUFFIX = ".ir-metadata.yml"
ENDINGS = re.compile(r"(?<=.)\.(txt|trec|run|tsv|res)$")  # of runs, which the name of the file lacks
ACTOR = "RNNRERANKER_ACTOR"  # in the environment: `team=…,name=…`
OF_ACTOR = ("name", "orcid", "team", "fields", "mail", "role", "degree", "github", "twitter")
TOOLKITS = ("rnnreranker", "pyserini")


def file_beside(run: str | os.PathLike[str]) -> Path | None:
    """The file of a run: `run.ir-metadata.yml` of `run.txt` and `run.txt.gz`; None for stdout, a device, a pipe."""
    path = Path(run)
    if os.fspath(run) == STDOUT or (path.exists() and not path.is_file()):
        return None
    return path.with_name(ENDINGS.sub("", path.name.removesuffix(".gz")) + SUFFIX)


def actor() -> dict[str, Any]:
    """The actor of RNNRERANKER_ACTOR, perhaps empty; InputError: another form, or an unknown key."""
    if not (said := os.environ.get(ACTOR)):
        return {}
    own = Written.read(f"actor:{said}").params
    if unknown := [name for name in own if name not in OF_ACTOR]:
        raise InputError(f"{ACTOR}={said}: {unknown[0]}: {nearest(unknown[0], OF_ACTOR)}")
    if not own:
        raise InputError(f"{ACTOR}={said}: expected KEY=VALUE,KEY=VALUE, keys of {', '.join(OF_ACTOR)}")
    return {name: str(value).split(";") if name == "fields" else str(value) for name, value in own.items()}


def write_ir_metadata(
    path: Path, tag: str, words: Sequence[str], wanted: OutputRequest, protocol: str, work: Pipeline
) -> None:
    """Write the file; InputError: it cannot be written, and as `actor`.

    tag: of the run; words: of the command, after its name; wanted: qrels and measures, with their protocol; work: the
    search.
    """
    import yaml

    evaluation: dict[str, Any] = {}
    if wanted.qrels:
        evaluation |= {"reported measures": wanted.measures.split(), "protocol": protocol}
    if work.steps and (baseline := _first_tag(work)):
        evaluation["baseline"] = [baseline]
    source = {"lang": ["python"]} | ({"commit": made_by} if (made_by := commit()) else {})
    about = {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": tag,
        "platform": _platform(),
        "research goal": {"evaluation": evaluation} if evaluation else {},
        "implementation": {"executable": {"cmd": shown_command(words)}, "source": source},
        "method": {"automatic": True, "retrieval": stages(work)},
        "actor": actor(),
        "data": _data(wanted.qrels, work),
    }
    text = yaml.safe_dump(about, sort_keys=False, allow_unicode=True, width=4096)
    with write_atomically(path) as stream:
        stream.write(text.encode())


def stages(work: Pipeline) -> list[dict[str, Any]]:
    """The methods in their order, each with its settings and the name of the stage it reads."""
    entries: list[dict[str, Any]] = []
    request = work.request

    def add(name: str, method: str, params: Mapping[str, Any], **others: Any) -> str:
        own = name if all(one["name"] != name for one in entries) else f"{name} {len(entries) + 1}"
        known = {key: local_name(value) for key, value in params.items() if value is not None}
        entry = {"name": own, "method": method, "params": known} | {k.replace("_", " "): v for k, v in others.items()}
        entries.append({key: value for key, value in entry.items() if value})
        return own

    def of(method: Any, **others: Any) -> str:
        kind = type(method)
        source = {"from": getattr(method, "source", None), "queries": getattr(method, "queries", None)}
        texts = {key: value for key, value in source.items() if isinstance(value, str)}
        return add(kind.name, f"{kind.__module__}.{kind.__qualname__}", method.params.to_dict() | texts, **others)

    before = []
    for retriever in work.retrievers:
        last = of(retriever, encoder=_encoder(retriever, work), depth=work.depth)
        before.append(of(retriever.feedback, searches_again=last) if retriever.feedback is not None else last)
    if len(before) > 1:
        how = request.methods.fusion.to_dict()
        last = add(how.pop("fuse"), "rnnreranker.runs.fuse.fuse", how, interpolates=before)
    elif before:
        last = before[0]
    else:
        name = Path(request.run).name if isinstance(request.run, str | Path) else "run"
        last = add(name, "", {}, run=name, depth=work.depth)
    if work.expander is not None:
        last = of(work.expander, expands=last)
    for reranker in work.rerankers:
        last = of(reranker, reranks=last)
    if (passages := request.methods.passages) is not None:
        how = passages.to_dict()
        add(how.pop("aggregate"), "rnnreranker.runs.passages", how, aggregates=last)
    return entries


def shown_command(words: Sequence[str]) -> str:
    """The command for a shell, without the folders of this machine.

    >>> shown_command(["--run", "/home/ada/a.txt", "--rerank", "scorer:model=/home/ada/m", "--query", "/ a"])
    "python -m rnnreranker.search --run a.txt --rerank scorer:model=m --query '/ a'"
    """
    shown = ["python", "-m", "rnnreranker.search"]
    for before, word in zip(["", *words], words, strict=False):
        is_text = before == "--query" or word.startswith("--query=")
        pieces = [word] if _ELSEWHERE.match(word) else re.split(r"(=|,|\+|(?<=\w):(?=[/~]))", word)
        shown.append(word if is_text else "".join(map(local_name, pieces)))
    return shlex.join(shown)


_ELSEWHERE = re.compile(r"(/|~|\.\.(/|$)|[A-Za-z]:\\)")


def local_name(value: Any) -> Any:
    """A value for files that others read: a path outside the working folder becomes its last name.

    >>> local_name("/home/ada/bm25.txt"), local_name("runs/bm25.txt"), local_name("BAAI/bge-small-en"), local_name(5)
    ('bm25.txt', 'runs/bm25.txt', 'BAAI/bge-small-en', 5)
    """
    text = str(value) if isinstance(value, Path) else value
    return re.split(r"[/\\]", text.rstrip("/\\"))[-1] if isinstance(text, str) and _ELSEWHERE.match(text) else text


def _platform() -> dict[str, Any]:
    cpu = {"architecture": platform.machine(), "operation mode": f"{64 if sys.maxsize > 2**32 else 32}-bit"}
    hardware: dict[str, Any] = {"cpu": {**cpu, "number of cores": cores()}}
    if memory := memory_gb():
        hardware["ram"] = f"{memory:.0f} GB"
    pinned = {name: f"{name}=={version}" for name, version in versions().items()}
    libraries = [f"python=={platform.python_version()}", *(pinned[one] for one in pinned if one not in TOOLKITS)]
    system = {"platform": platform.system(), "kernel": platform.release()}
    toolkits = [pinned[name] for name in TOOLKITS if name in pinned]
    software = {"libraries": {"python": libraries}, "retrieval toolkit": toolkits}
    return {"hardware": hardware, "operating system": system, "software": software}


def _data(qrels: str | None, work: Pipeline) -> dict[str, Any]:
    request, settings, name = work.request, work.index.settings, local_name(work.index.name)
    named = isinstance(request.topics, str | Path)
    collection = {
        "name": local_name(settings.get("documents") or name),
        "qrels": local_name(qrels),
        "topics": local_name(request.topics) if named else None,
        "ir_datasets": ir_datasets_id(str(request.topics)) if named else None,
    }
    index = {"name": name, "source": "index", "parts": list(work.index.parts)}
    index |= {"fingerprint": settings["fingerprint"]} if settings.get("fingerprint") else {}
    other = [index]
    if isinstance(request.encoded_queries, str | Path):
        other.append({"name": local_name(request.encoded_queries), "source": "vectors of the queries"})
    return {"test collection": {key: value for key, value in collection.items() if value}, "other": other}


def _encoder(retriever: Any, work: Pipeline) -> str:
    own: list[Any] = [work.index.described(part).get("encoder") for part in sorted(parts_of(retriever.needs))]
    name = next((one["name"] for one in own if isinstance(one, dict) and one.get("name")), "")
    if "query vectors" in retriever.needs:
        name = "" if work.request.encoded_queries is not None else work.request.methods.encoding.encoder or name
    return str(local_name(name))


def _first_tag(work: Pipeline) -> str:
    if work.retrieved_by:
        return f"{work.retrieved_by}.none"
    words = first_line(work.request.run).split() if isinstance(work.request.run, str | Path) else []
    return words[5] if len(words) == 6 else ""
