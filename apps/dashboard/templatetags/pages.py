"""How values look on the pages: always escaped, never long."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.governance.erasure.extent import Counted
from apps.judging.reasons import explained
from apps.keys.models import ApiKey
from apps.keys.selectors import effective, idle
from apps.learning.models import TrainingRun

register = template.Library()
LONGEST_TEXT = 8000  # characters of one message on a page
_PHASES = {
    "load": "reading the samples",
    "teacher": "asking the hinted teacher",
    "prox": "scoring the replies",
    "learn": "learning",
    "check": "checking how far it moved",
    "write": "writing the version",
}
_GOOD = {
    "live",
    "ready",
    "complete",
    "settled",
    "succeeded",
    "consumed",
    "passed",
    "learned",
    "in the prompt",
}
_WAIT = {"pending", "queued", "running", "claimed", "created", "waits"}
_BAD = {"failed", "refused", "aborted"}


@register.filter
def chip(word: str) -> SafeString:
    """Return a state as a small label: its colour says good, waiting or bad, its word which."""
    tone = "good" if word in _GOOD else "wait" if word in _WAIT else "bad" if word in _BAD else "calm"
    return format_html('<span class="chip {}">{}</span>', tone, word)


@register.filter
def prose(words: str) -> SafeString:
    """Return our own words with what stands between backticks as code."""
    parts = enumerate(words.split("`"))
    shown = (format_html("<code>{}</code>" if number % 2 else "{}", part) for number, part in parts)
    return format_html_join("", "{}", ((part,) for part in shown))


@register.filter
def moment(when: dt.datetime | None) -> SafeString | str:
    """Return a time in UTC, which the page's script shows in the reader's zone."""
    if when is None:
        return "-"
    utc = when.astimezone(dt.UTC)
    return format_html(
        '<time datetime="{}">{} UTC</time>', utc.isoformat(timespec="seconds"), utc.strftime("%Y-%m-%d %H:%M")
    )


@register.filter
def seconds(milliseconds: float | None) -> str:
    """Return milliseconds as seconds."""
    return "-" if milliseconds is None else f"{milliseconds / 1000:.2f} s"


@register.filter
def thousands(value: int) -> str:
    """Return a count with its thousands apart."""
    return f"{value:,}".replace(",", "\u202f")


@register.filter
def counted(found: Counted) -> str:
    """Return a count as far as it was taken."""
    return f"more than {thousands(found.number)}" if found.is_more else thousands(found.number)


@register.filter
def numbered(version: Any) -> int:
    """Return a version's number; no version is 0, the bare base."""
    return 0 if version is None or version == "" else int(version.number)


@register.filter
def number(value: Any) -> str:
    """Return a number to five digits, an object as its names with theirs, anything else as it is, cut."""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}: {number(one)}" for name, one in value.items())
    return cut(str(value), 200)


@register.filter
def cut(text: Any, limit: int = LONGEST_TEXT) -> str:
    """Return at most `limit` characters, saying how many were left out."""
    said = str(text)
    return said if len(said) <= limit else f"{said[:limit]} … [{len(said) - limit:,} more characters]"


@register.filter
def words(message: Mapping[str, Any]) -> str:
    """Return what a message says, text parts joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


@register.filter
def verdict(score: float) -> SafeString:
    """Return a judge's score in a word."""
    tone, word = ("good", "good") if score > 0 else ("bad", "bad") if score < 0 else ("calm", "neutral")
    return format_html('<span class="chip {}">{}</span>', tone, word)


@register.filter
def thumb(score: float | None) -> SafeString | str:
    """Return a score by hand in a word, or nothing where there is none."""
    return "" if score is None else verdict(score)


@register.filter
def brief(detail: Any) -> str:
    """Return the plain values of a JSON object in one line."""
    if not isinstance(detail, dict):
        return ""
    flat = {name: value for name, value in detail.items() if not isinstance(value, dict | list)}
    return cut(", ".join(f"{name} {number(value)}" for name, value in flat.items()), 300)


@register.filter
def took(run: TrainingRun) -> str:
    """Return how long a run worked, or has worked so far."""
    if run.started_at is None:
        return "-"
    if run.finished_at is None:
        return f"{_span(timezone.now() - run.started_at)} so far"
    return _span(run.finished_at - run.started_at)


@register.filter
def eta(progress: Mapping[str, Any]) -> str:
    """Return how long what is left of a run's phase will take, if it goes on as it did."""
    done, total, spent = (float(progress.get(name) or 0) for name in ("done", "total", "seconds"))
    return "-" if done <= 0 else _span(dt.timedelta(seconds=max(0.0, spent / done * (total - done))))


@register.filter
def named(token: str, words: Mapping[str, str]) -> SafeString | str:
    """Return who or what a name of the audit log stands for, which is in its title; without words the name itself."""
    if token not in words:
        return token
    return format_html('<span title="{}">{}</span>', token, words[token])


@register.filter
def phase(name: str) -> str:
    """Return what a run is at, in words; an unknown phase as it is."""
    return _PHASES.get(name, name)


@register.filter
def means(reason: str | None) -> str:
    """Return what a stored reason why a turn taught nothing means, in a sentence;
    "" where it is none of the known ones."""
    return explained(reason or "")


@register.filter
def may(key: ApiKey) -> SafeString:
    """Return the scopes of a key `with_roles`; those that do not count are struck out, and it is said why."""
    shown = ", ".join(effective(key))
    if not (struck := idle(key)):
        return format_html("{}", shown)
    role = key.role  # type: ignore[attr-defined]
    why = f"not as a {role}" if role is not None else "no member any more"
    return format_html(
        '{}{}<s>{}</s> <span class="soft">{}</span>', shown, ", " if shown else "", ", ".join(struck), why
    )


@register.filter
def limits(key: Any) -> str:
    """Return what a key may ask beyond the platform's defaults."""
    limit = getattr(key, "limit", None)
    if limit is None:
        return "defaults"
    values = {
        "requests/min": limit.requests_per_minute,
        "tokens/min": limit.tokens_per_minute,
        "at once": limit.concurrent,
    }
    said = [f"{value or 'any number of'} {unit}" for unit, value in values.items() if value is not None]
    return ", ".join(said) or "defaults"


def _span(span: dt.timedelta) -> str:
    whole = span.total_seconds()
    if whole < 90:
        return f"{whole:.0f} s"
    return f"{whole / 60:.0f} min" if whole < 5400 else f"{whole / 3600:.1f} h"
