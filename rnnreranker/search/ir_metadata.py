"""The ir_metadata file of a run: https://www.ir-metadata.org.

Six components (PRIMAD): platform, research goal, implementation, method, actor, data. The actor comes from
`RNNRERANKER_ACTOR`; a path on this machine appears by its last name.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import cores
from rnnreranker.base.files import STDOUT, write_atomically
from rnnreranker.base.record import commit, versions
from rnnreranker.base.settings import Written, check_names, located
from rnnreranker.data.irds import ir_datasets_id

if TYPE_CHECKING:
    from rnnreranker.search.pipeline import Pipeline
    from rnnreranker.search.request import OutputRequest

ENDINGS = re.compile(r"(?<=.)\.(txt|trec|run|tsv|res)$")  # of runs, which the name of the file lacks
ACTOR = "RNNRERANKER_ACTOR"  # in the environment: `team=…,name=…`
OF_ACTOR = ("name", "orcid", "team", "fields", "mail", "role", "degree", "github", "twitter")


def file_beside(run: str | os.PathLike[str]) -> Path | None:
    """The file of a run: `run.ir-metadata.yml` of `run.txt` and `run.txt.gz`; None for stdout, a device, a pipe."""
    path = Path(run)
    if os.fspath(run) == STDOUT or (path.exists() and not path.is_file()):
        return None
    return path.with_name(ENDINGS.sub("", path.name.removesuffix(".gz")) + ".ir-metadata.yml")


def actor() -> dict[str, Any]:
    """The actor of RNNRERANKER_ACTOR, perhaps empty; InputError: another form, or an unknown key."""
    if not (said := os.environ.get(ACTOR)):
        return {}
    own = Written.read(f"actor:{said}").params
    with located(f"{ACTOR}={said}: expected KEY=VALUE,KEY=VALUE"):
        check_names(own or {said: ""}, OF_ACTOR)
    return {name: str(value).split(";") if name == "fields" else str(value) for name, value in own.items()}


def write_ir_metadata(
    path: Path, tag: str, words: Sequence[str], wanted: OutputRequest, protocol: str, work: Pipeline
) -> None:
    """Write the file; InputError: it cannot be written, and as `actor`.

    tag: of the run; words: of the command, after its name; wanted: qrels and measures, with their protocol; work: the
    search.
    """
    import yaml

    request, settings, index = work.request, work.index.settings, local_name(work.index.name)
    measured = {"reported measures": wanted.measures.split(), "protocol": protocol} if wanted.qrels else {}
    baseline = [f"{work.retrieved_by}.none"] if work.retrieved_by and work.steps else []
    topics = str(request.topics) if isinstance(request.topics, str | Path) else ""
    collection = {
        "name": local_name(settings.get("documents") or index),
        "qrels": local_name(wanted.qrels),
        "topics": local_name(topics),
        "ir_datasets": ir_datasets_id(topics) if topics else None,
    }
    own = {"name": index, "source": "index", "parts": [*work.index.parts], "fingerprint": settings.get("fingerprint")}
    known = versions()
    bits, system = platform.architecture()[0], platform.uname()
    about = {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": tag,
        "platform": {
            "hardware": {
                "cpu": {"architecture": system.machine, "operation mode": bits, "number of cores": cores()},
            },
            "operating system": {"platform": system.system, "kernel": system.release},
            "software": {
                "retrieval toolkit": [f"rnnreranker=={known.pop('rnnreranker')}"],
                "libraries": {"python": [f"{name}=={one}" for name, one in known.items()]},
            },
        },
        "research goal": _filled({"evaluation": _filled({**measured, "baseline": baseline})}),
        "implementation": {
            "executable": {"cmd": shown_command(words)},
            "source": _filled({"lang": ["python"], "commit": commit()}),
        },
        "method": {"automatic": True, "retrieval": stages(work)},
        "actor": actor(),
        "data": {"test collection": _filled(collection), "other": [_filled(own)]},
    }

    class Dumper(yaml.SafeDumper):
        """Quotes 0043e382, a text for YAML 1.1 and a number for YAML 1.2."""

    def of_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
        style = "'" if _NUMBER.fullmatch(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, of_text)
    text = yaml.dump(about, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=4096)
    with write_atomically(path) as stream:
        stream.write(text.encode())


def stages(work: Pipeline) -> list[dict[str, Any]]:
    """The methods in their order, each with its settings and the name of the stage it reads."""
    entries: list[dict[str, Any]] = []
    request = work.request

    def add(name: str, made_by: str, settings: Mapping[str, Any], **others: Any) -> str:
        own = name if all(one["name"] != name for one in entries) else f"{name} {len(entries) + 1}"
        params = {key: local_name(value) for key, value in settings.items() if value is not None}
        entries.append(_filled({"name": own, "method": made_by, "params": params, **others}))
        return own

    def of(method: Any, **others: Any) -> str:
        kind, settings = type(method), method.params.to_dict()
        if getattr(method, "takes_source", False):
            settings |= {"from": method.source, "queries": method.queries}
        return add(kind.name, f"{kind.__module__}.{kind.__qualname__}", settings, **others)

    last, before = "", []
    for retriever in work.retrievers:
        last, again = of(retriever, depth=work.depth), retriever.feedback
        before.append(of(again, **{"searches again": last}) if again else last)
    if not before:
        last = Path(work.request.run).name if isinstance(work.request.run, str | Path) else "run"
        before = [add(last, "", {}, run=last, depth=work.depth)]
    last = before[0]
    if len(before) > 1:
        fusion = request.fusion.to_dict()
        last = add(fusion.pop("fuse"), "rnnreranker.runs.fuse.fuse", fusion, interpolates=before)
    if work.expander is not None:
        last = of(work.expander, expands=last)
    for reranker in work.rerankers:
        last = of(reranker, reranks=last)
    if request.passages is not None:
        passages = request.passages.to_dict()
        add(passages.pop("aggregate"), "rnnreranker.runs.passages", passages, aggregates=last)
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


_NUMBER = re.compile(r"[-+]?\d+e[-+]?\d+", re.IGNORECASE)
_ELSEWHERE = re.compile(r"(/|~|\.\.(/|$)|[A-Za-z]:\\)")


def local_name(value: Any) -> Any:
    """A value for files that others read: a path outside the working folder becomes its last name.

    >>> local_name("/home/ada/bm25.txt"), local_name("runs/bm25.txt"), local_name("BAAI/bge-small-en"), local_name(5)
    ('bm25.txt', 'runs/bm25.txt', 'BAAI/bge-small-en', 5)
    """
    text = str(value) if isinstance(value, Path) else value
    return re.split(r"[/\\]", text.rstrip("/\\"))[-1] if isinstance(text, str) and _ELSEWHERE.match(text) else text


def _filled(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value}
