"""Cues in what tools answered."""

import json
import re
from collections.abc import Sequence

from apps.judging.backends.cue.cues import Cue

_ERROR_KEYS = ("error", "errors", "exception", "traceback", "stderr")
_TROUBLE = re.compile(
    r"\btraceback \(most recent call last\)|^[^\S\n]*(?:\w+(?:error|exception)|error|fatal|panic|failed|failure)\b\s*[:!\[(]|"
    r"\b(?:command not found|no such file|permission denied|access denied|timed out|segmentation fault)\b|"
    r"\bexit(?:ed)?[ _]?(?:with )?(?:code|status)?[ :=]+[1-9]\d*\b|\bhttp[ /\d.]*[45]\d\d\b",
    re.IGNORECASE | re.MULTILINE,
)


def tool_cues(results: Sequence[str]) -> list[Cue]:
    """Return one cue: every result is free of errors, or one is not."""
    broken = sum(_failed(result) for result in results)
    if broken:
        return [Cue("tool error", -2.0)]
    return [Cue("tool result without error", 1.0)]


def _failed(result: str) -> bool:
    try:
        data = json.loads(result)
    except (ValueError, RecursionError):
        return bool(_TROUBLE.search(result[:20_000]))
    if isinstance(data, dict):
        code = data.get("exit_code", data.get("returncode"))
        status = data.get("status_code", data.get("status"))
        return (
            any(data.get(key) for key in _ERROR_KEYS)
            or data.get("ok") is False
            or data.get("success") is False
            or str(status).casefold() in ("error", "failed", "failure")
            or (isinstance(code, int) and code != 0)
            or (isinstance(status, int) and status >= 400)
        )
    return isinstance(data, str) and bool(_TROUBLE.search(data[:20_000]))
