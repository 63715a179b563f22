"""Where the cache of the Hugging Face hub has a model: a folder of its id, `refs/main`, a snapshot."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rnnreranker.base.files import write_atomically


def cache(folder: Path) -> dict[str, str]:
    """The environment variables of a cache of the hub below a folder, which nothing is downloaded to."""
    home = folder.absolute() / "huggingface"
    return {"HF_HOME": str(home), "HF_HUB_CACHE": str(home / "hub"), "HF_HUB_OFFLINE": "1"}


def snapshot(folder: Path, hub_id: str) -> Path:
    """The folder of the files of a model, which `refs/main` points to; not made here."""
    commit = hashlib.sha1(hub_id.encode(), usedforsecurity=False).hexdigest()
    home = Path(cache(folder)["HF_HUB_CACHE"]) / f"models--{hub_id.replace('/', '--')}"
    main = home / "refs" / "main"
    if not main.is_file() or main.read_text(encoding="ascii") != commit:
        main.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(main) as stream:
            stream.write(commit.encode())
    return home / "snapshots" / commit
