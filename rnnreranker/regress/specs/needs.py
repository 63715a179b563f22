"""What steps need: disk, memory, downloads, a GPU, hours, agreements and files; added up, and in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

TEXTS = ("agreement", "files")
UNITS = {  # of sizes
    "download_gb": "GB to download",
    "disk_gb": "GB of disk",
    "ram_gb": "GB of memory",
    "gpu_hours": "hours of a GPU",
    "hours": "hours of computing",
}


def needs_of(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Needs together: sizes and hours added up (memory: the most), agreements and files listed once."""
    total: dict[str, Any] = {}
    for needs in several:
        for key, value in needs.items():
            if isinstance(value, str):
                texts = total.setdefault(key, "")
                total[key] = texts if value in texts else "; ".join(filter(None, (texts, value)))
            elif key == "ram_gb":
                total[key] = max(total.get(key, 0), value)
            else:
                total[key] = total.get(key, 0) + value
    return total


def needs_text(needs: Mapping[str, Any]) -> str:
    """Needs in words.

    >>> needs_text({"disk_gb": 2, "hours": 1})
    '2 GB of disk, 1 hour of computing'
    """
    texts = [f"{value:g} {UNITS[key]}" if key in UNITS else str(value) for key, value in needs.items()]
    return ", ".join(text.replace("hours", "hour", 1) if text.startswith("1 hours") else text for text in texts)
