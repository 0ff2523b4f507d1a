"""What is measured of the slots. Labels name engines, never tenants or adapters."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_WAITS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class SlotCounters:
    """One process's counters, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        engine = ["engine"]
        self.requests = Counter(
            "attune_engine_requests", "Requests sent to engines.", ["engine", "kind"], registry=self.registry
        )
        self.joined = Counter(
            "attune_adapter_slot_joins",
            "Requests that went at once because their adapter was in work already.",
            engine,
            registry=self.registry,
        )
        self.wait = Histogram(
            "attune_adapter_slot_wait_seconds",
            "How long requests waited for a slot of their adapter.",
            engine,
            buckets=_WAITS_S,
            registry=self.registry,
        )
        self.refused = Counter(
            "attune_adapter_slot_refusals",
            "Requests that got no slot in time.",
            engine,
            registry=self.registry,
        )
        self.alone = Counter(
            "attune_adapter_slot_unshared_looks",
            "Decisions made without the other processes, because Redis did not answer.",
            engine,
            registry=self.registry,
        )
        self.used = Gauge(
            "attune_adapter_slots_used",
            "Distinct adapters in flight from this process.",
            engine,
            registry=self.registry,
        )
        self.waiting = Gauge(
            "attune_adapter_slot_waiting", "Adapters that wait for a slot.", engine, registry=self.registry
        )

    def text(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self.registry)
