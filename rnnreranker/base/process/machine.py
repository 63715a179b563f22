"""What this machine is: its processor, its memory, its system."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def processor() -> str:
    """The model of the processor, as Linux tells it; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def memory_gb() -> float:
    """The memory of this machine in GB; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, ValueError, OSError):
        return 0.0


def distribution() -> str:
    """The name of the operating system with its version, as people say it."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.platform())
    except (AttributeError, OSError):
        return platform.platform()
