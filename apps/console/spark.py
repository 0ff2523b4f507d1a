"""A series as a small line with its bound, drawn on the server: no script."""

from collections.abc import Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString

WIDTH, HEIGHT, EDGE = 180.0, 36.0, 3.0


def spark(values: Sequence[float], limit: float | None) -> SafeString:
    """Return an SVG line of the values, oldest left, and a dashed line at the limit where it is in sight."""
    if not values:
        return SafeString("")
    shown = [
        *values,
        *([limit] if limit is not None and limit <= 4 * max(map(abs, values), default=0) else []),
    ]
    low, high = min(shown), max(shown)
    span = (high - low) or 1.0

    def y(value: float) -> float:
        return HEIGHT - EDGE - (value - low) / span * (HEIGHT - 2 * EDGE)

    step = (WIDTH - 2 * EDGE) / max(1, len(values) - 1)
    line = " ".join(f"{EDGE + number * step:.1f},{y(value):.1f}" for number, value in enumerate(values))
    bound = SafeString("")
    if limit is not None and low <= limit <= high:
        bound = format_html(
            '<line class="at-spark-bound" x1="0" x2="{}" y1="{}" y2="{}"/>',
            f"{WIDTH:g}",
            f"{y(limit):.1f}",
            f"{y(limit):.1f}",
        )
    return format_html(
        '<svg class="at-spark" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}'
        '<polyline points="{}"/><circle cx="{}" cy="{}" r="2"/></svg>',
        f"{WIDTH:g}", f"{HEIGHT:g}", f"{WIDTH:g}", f"{HEIGHT:g}",
        f"{len(values)} readings, the last {values[-1]:.3g}",
        bound, line, f"{EDGE + (len(values) - 1) * step:.1f}", f"{y(values[-1]):.1f}",
    )  # fmt: skip
