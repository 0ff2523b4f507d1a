"""REST: the overview's figures."""

import datetime as dt
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from apps.dashboard.metrics import RANGES, moves, traffic
from kernel.errors import InvalidInput
from kernel.rest.caller import Access
from kernel.rest.views import ScopedView

DEFAULT_RANGE = "7d"


class ShareSerializer(serializers.Serializer[Any]):
    """The median and the 95th percentile, milliseconds, each within 1 % of itself; null where there is none."""

    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)


class TrafficPointSerializer(serializers.Serializer[Any]):
    """The requests of one point in time: of `minutes` from its beginning on."""

    at = serializers.DateTimeField()
    requests = serializers.IntegerField(help_text="All of them, `failed` among them.")
    failed = serializers.IntegerField()
    reply_tokens = serializers.IntegerField()
    first_token_ms = ShareSerializer()


class RewardPointSerializer(serializers.Serializer[Any]):
    """What was said of the replies of one point in time."""

    at = serializers.DateTimeField()
    reward = serializers.FloatField(help_text="The mean.")
    samples = serializers.IntegerField(help_text="How many it is the mean of.")


class LiveSinceSerializer(serializers.Serializer[Any]):
    """A version that became live."""

    at = serializers.DateTimeField()
    policy = serializers.CharField(help_text="Its name.")
    version = serializers.IntegerField(help_text="0 is the bare base.")


class MetricsSerializer(serializers.Serializer[Any]):
    """A tenant's traffic over a stretch of time: sums, and points in order of time; a point without anything is left out. The first token is of streamed replies, and of others where the engine says when it was."""

    range = serializers.ChoiceField(choices=list(RANGES))
    minutes = serializers.IntegerField(help_text="That a point stands for.")
    requests = serializers.IntegerField(help_text="All of them, `failed` among them.")
    failed = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    reply_tokens = serializers.IntegerField()
    first_token_ms = ShareSerializer()
    latency_ms = ShareSerializer()
    points = TrafficPointSerializer(many=True)
    rewards = RewardPointSerializer(many=True)
    live = LiveSinceSerializer(
        many=True,
        help_text="Oldest first; of more than 100 each point has its last, and all of them are under `moves`.",
    )


class RangeSerializer(serializers.Serializer[Any]):
    """How far back."""

    range = serializers.ChoiceField(choices=list(RANGES), default=DEFAULT_RANGE)


class MetricsApi(ScopedView):
    """The figures of the overview."""

    needs = {"*": Access.VIEW}
    serializer_class = MetricsSerializer

    @extend_schema(parameters=[RangeSerializer], responses=MetricsSerializer)
    def get(self, request: Any) -> Response:
        """Show the traffic of the last day, week or 30 days as the overview does, with versions as they became live."""
        given = request.query_params.getlist("range") or [DEFAULT_RANGE]
        if len(given) > 1 or given[0] not in RANGES:
            raise InvalidInput(f"Must be one of {', '.join(RANGES)}, given once.", field="range")
        span = given[0]
        seen = traffic(self.caller.tenant_id, span)
        shown = {
            "range": span,
            "minutes": RANGES[span][1],
            "requests": seen.requests,
            "failed": seen.failed,
            "prompt_tokens": seen.prompt_tokens,
            "reply_tokens": seen.reply_tokens,
            "first_token_ms": _shares(*seen.first_token_ms),
            "latency_ms": _shares(*seen.latency_ms),
            "points": [
                {
                    "at": _at(point["t"]),
                    "requests": point["requests"],
                    "failed": point["failed"],
                    "reply_tokens": point["tokens"],
                    "first_token_ms": _shares(point["p50"], point["p95"]),
                }
                for point in seen.points
            ],
            "rewards": [
                {"at": _at(point["t"]), "reward": point["reward"], "samples": point["n"]}
                for point in seen.rewards
            ],
            "live": [
                {"at": _at(move["t"]), "policy": move["policy"], "version": move["version"]}
                for move in moves(self.caller.tenant_id, span)
            ],
        }
        return Response(MetricsSerializer(shown).data)


def _shares(p50: float | None, p95: float | None) -> dict[str, float | None]:
    return {"p50": p50, "p95": p95}


def _at(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
