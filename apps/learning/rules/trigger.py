"""When a policy makes a step."""


def called_for(*, takeable: int, waited_s: float, batch: int, flush_s: float) -> str | None:
    """Return what calls for a run: "threshold" (a whole batch may be taken),
    "clock" (the oldest waited), or None."""
    if takeable >= batch:
        return "threshold"
    return "clock" if takeable and waited_s >= flush_s else None
