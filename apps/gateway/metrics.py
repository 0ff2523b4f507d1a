"""What a gateway process counts. Labels never name a tenant, a key, a policy or an end user."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class Counters:
    """One process's counters, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._prompts = Counter(
            "attune_prompts",
            "Prompts by how their tokens came about: first, extended (the stored ids of the turn before plus the "
            "ids of what was added) or rendered (the template anew, for a reason).",
            ["source", "reason"],
            registry=self.registry,
        )
        self._answers = Counter(
            "attune_gateway_responses", "Responses by status.", ["status"], registry=self.registry
        )
        self._ended = Counter(
            "attune_turns_ended", "Turns by how they ended.", ["state"], registry=self.registry
        )
        self.moved = Counter(
            "attune_gateway_moves",
            "Requests sent to a second engine because the first was gone or refused.",
            registry=self.registry,
        )
        self._running = Gauge(
            "attune_gateway_running", "Requests that are being answered.", registry=self.registry
        )
        self._alone = Gauge(
            "attune_gateway_limits_alone",
            "1 while Redis is away and limits are kept alone.",
            registry=self.registry,
        )

    def prompt(self, *, source: str, reason: str) -> None:
        """Count a prompt. Its reason is one of a few that our own code names."""
        self._prompts.labels(source, reason).inc()

    def answer(self, status: int) -> None:
        """Count a response."""
        self._answers.labels(str(status)).inc()

    def turn(self, state: str) -> None:
        """Count a turn's end."""
        self._ended.labels(state).inc()

    def text(self, *, running: int, alone: bool) -> bytes:
        """Return all of it in Prometheus' text format."""
        self._running.set(running)
        self._alone.set(alone)
        return generate_latest(self.registry)
