"""How values look in the console: always escaped, never long."""

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from kernel.ids import tail

TEXT_LIMIT = 4000  # characters of one message on a page
_TONE = {
    "well": "good",
    "slow": "wait",
    "failing": "bad",
    "live": "good",
    "ready": "good",
    "complete": "good",
    "settled": "good",
    "succeeded": "good",
    "probed": "good",
    "consumed": "good",
    "pending": "wait",
    "queued": "wait",
    "running": "wait",
    "claimed": "wait",
    "created": "wait",
    "starting": "wait",
    "loading": "wait",
    "draining": "wait",
    "delivered": "good",
    "sent": "good",
    "under way": "wait",
    "info": "calm",
    "warning": "wait",
    "critical": "bad",
    "dead": "bad",
    "pause": "bad",
    "paused": "bad",
    "fall_back": "bad",
    "alert": "wait",
    "failed": "bad",
    "refused": "bad",
    "lost": "bad",
    "aborted": "bad",
}


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return at most `limit` characters, saying how many were left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} … [{len(text) - limit:,} more characters]"


def chip(word: str) -> SafeString:
    """Return a state as a small label; its colour says good, waiting or bad, its word says which."""
    return format_html(
        '<span class="at-chip at-{}">{}</span>', _TONE.get(word, "calm"), word.replace("_", " ")
    )


def named(token: str, words: Mapping[str, str]) -> SafeString | str:
    """Return whom or what a name of the audit log stands for, by `names_of`; the name itself on hover."""
    if token not in words:
        return token or "-"
    return format_html('<span title="{}">{}</span>', token, words[token])


def moment(when: dt.datetime | None) -> str:
    """Return a time as all lists show it."""
    return "-" if when is None else f"{timezone.localtime(when):%Y-%m-%d %H:%M:%S}"


def reward(value: float | None) -> SafeString:
    """Return a reward with its sign."""
    if value is None:
        return format_html('<span class="at-muted">{}</span>', "none")
    tone = "good" if value > 0 else "bad" if value < 0 else "calm"
    return format_html('<span class="at-chip at-{}">{}</span>', tone, f"{value:+g}")


def short(value: object) -> SafeString:
    """Return an id by its last eight digits (the first ones are the time), whole on hover."""
    return format_html('<span class="at-id" title="{}">{}</span>', str(value), tail(value))


def as_json(value: Any) -> SafeString:
    """Return a JSON value, indented and cut, numbers to six digits."""
    text = json.dumps(_rounded(value), indent=2, ensure_ascii=False, sort_keys=True, default=str)
    return format_html('<pre class="at-json">{}</pre>', cut(text))


def in_brief(value: object) -> str:
    """Return the numbers and words of a JSON object in one line, numbers to four digits;
    what is nested is left out."""
    if not isinstance(value, dict):
        return ""
    flat = {
        name: item for name, item in value.items() if not isinstance(item, dict | list) and name != "reason"
    }
    return ", ".join(
        f"{name} {item:.4g}" if isinstance(item, float) else f"{name} {item}" for name, item in flat.items()
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def link(row: models.Model | None, text: str = "") -> SafeString | str:
    """Return a link to a row's page in the console, or a dash."""
    if row is None:
        return "-"
    opts = row._meta  # noqa: SLF001
    address = reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[row.pk])
    return format_html('<a class="at-link" href="{}">{}</a>', address, Truncator(text or str(row)).chars(60))


def listing(model: type[models.Model], text: str, **filters: object) -> SafeString:
    """Return a link to the list of a model's rows that match `filters`."""
    opts = model._meta  # noqa: SLF001
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    address = reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
    return format_html('<a class="at-link" href="{}?{}">{}</a>', address, query, text)


def seconds(milliseconds: float | None) -> str:
    """Return a time in seconds, to hundredths."""
    return "-" if milliseconds is None else f"{milliseconds / 1000:.2f} s"


def joined(parts: Iterable[object]) -> SafeString:
    """Return parts in one line."""
    return format_html_join(" · ", "{}", ((part,) for part in parts))


def version(row: Any) -> SafeString | str:
    """Return an adapter version by number; None is the bare base."""
    return "0 (base)" if row is None else link(row, str(row.number))


def content_text(content: object) -> str:
    """Return a message's content as text: a string, or OpenAI's list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [
            part.get("text", f"[{part.get('type')}]") if isinstance(part, dict) else str(part)
            for part in content
        ]
        return "\n".join(parts)
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def message(value: dict[str, Any]) -> dict[str, str]:
    """Return a chat message as the timeline shows it: who, what, which tools it called."""
    calls = value.get("tool_calls") or []
    return {
        "role": str(value.get("role", "?")),
        "text": cut(content_text(value.get("content"))),
        "calls": cut(json.dumps(calls, indent=2, ensure_ascii=False)) if calls else "",
    }
