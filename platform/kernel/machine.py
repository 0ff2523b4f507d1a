"""What this machine's processor is, and what it computes quickly."""

import os
import platform
from pathlib import Path

_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Flags of processors that multiply bfloat16 themselves (x86 names, and ARM's); elsewhere each product is
computed by way of float32, at a fraction of its speed."""
_CPUINFO = Path("/proc/cpuinfo")


def processor() -> str:
    """Return the processor's name as it names itself, else the architecture's."""
    return _said("model name") or platform.machine()


def has_bfloat16() -> bool:
    """Return whether the processor multiplies bfloat16 itself."""
    return not _BFLOAT16.isdisjoint((_said("flags") or _said("Features")).split())


def describe() -> str:
    """Return the machine in a line: the cores that this process may use, processor, number format, memory."""
    cores, usable = os.cpu_count() or 1, len(os.sched_getaffinity(0))
    counted = f"{cores} cores" if usable == cores else f"{usable} of {cores} cores"
    memory_gb = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)
    fast = "with bfloat16" if has_bfloat16() else "without bfloat16"
    return f"{counted}, {processor()} {fast}, {memory_gb} GB, {platform.machine()}"


def _facts() -> dict[str, str]:
    try:
        text = _CPUINFO.read_text(encoding="ascii", errors="replace")
    except OSError:  # not Linux
        return {}
    first, _, _ = text.partition("\n\n")  # a paragraph for each core
    facts = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in facts}


def _said(name: str) -> str:
    return _facts().get(name, "")
