"""Under which circumstances a result came about: the command, the code, the versions, the machine."""

import importlib.metadata
import platform
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apps.evaluation.personalization.plan import texts_and_rules
from apps.evaluation.talk import TEMPERATURE
from apps.evaluation.users import MAX_TOKENS
from kernel import machine

_PACKAGES = ("openai", "django", "torch", "sglang", "megatron-core", "peft", "transformers")


def circumstances(*, command: Sequence[str], code: str) -> dict[str, Any]:
    """Return what a reader needs to do it again."""
    return {
        "command": shlex.join(["manage.py", "evaluate_personalization", *command]),
        "code": code,
        "texts_and_rules": texts_and_rules(),
        "versions": {"python": platform.python_version(), **_versions()},
        "machine": machine.describe(),
        "max_tokens": MAX_TOKENS,
        "temperature": TEMPERATURE,
    }


def code_version(repository: Path) -> str:
    """Return the commit, with `+` where files differ from it; `unknown` outside a repository."""

    def git(*arguments: str) -> str:
        ended = subprocess.run(
            ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=True, timeout=30
        )
        return ended.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
