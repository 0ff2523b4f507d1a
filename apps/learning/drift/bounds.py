"""How far is too far: every measure with its unit, its bound,
what a crossing does by default, and what it means.

Only the bound of `step_k3` was set by what good steps of a real policy measured (`docs/decisions/drift.md`).
The others are reasoned from what noise and theory give, and no real drift has tried them yet: look at a
policy's own readings (`manage.py drift`) before trusting one that pauses.

The setting DRIFT_BOUNDS overrides them for all policies, and a policy under `drift` in its configuration:
`{"drift": {"rollout_k3": {"limit": 0.5, "action": "fall_back"}, "staleness_mean": {"action": "off"}}}`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from django.conf import settings

from apps.learning.drift.models import Action, Gauge
from kernel.errors import InvalidInput

OFF = "off"
MARGIN = (
    0.8  # a crossing is over once the measure is within this share of its bound: it does not flap at the edge
)


@dataclass(frozen=True, slots=True)
class Bound:
    """One measure of one gauge and how far it may go."""

    measure: str
    gauge: Gauge
    about: str
    """What is measured, in words."""
    unit: str
    side: Literal["over", "under"]
    """Which side of the limit is too far."""
    limit: float
    low: float
    """Smallest limit that a policy may set, inclusive."""
    high: float
    """Largest, inclusive."""
    action: str
    """alert, pause, fall_back, or off."""
    means: str
    """What a crossing says of the policy."""
    in_a_row: int = 1
    """Readings past the bound before it counts as crossed, count."""

    def crossed(self, value: float) -> bool:
        """Whether a value is past the limit."""
        return value > self.limit if self.side == "over" else value < self.limit

    def well_inside(self, value: float) -> bool:
        """Whether a value is far enough inside the limit to end a crossing."""
        if self.side == "over":
            return value <= self.limit - abs(self.limit) * (1 - MARGIN)
        return value >= self.limit + abs(self.limit) * (1 - MARGIN)

    def words(self, value: float, values: Mapping[str, Any]) -> str:
        """Return a crossing in a sentence."""
        unit = f" {self.unit}" if self.unit else ""
        means = self.means.format_map(_Shown(values))
        return f"{self.about} is {value:.3g}{unit}, {self.side} the bound of {self.limit:g}: {means}"


class _Shown(dict[str, str]):
    """Other measures by name, to three digits."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__({n: f"{v:.3g}" for n, v in values.items() if isinstance(v, int | float)})

    def __missing__(self, key: str) -> str:
        return "?"


_ONE, _TWO, _THREE = Gauge.ROLLOUT_LEARNER, Gauge.ROLLOUT_DEPLOY, Gauge.LEARNER_DEPLOY
_ALERT, _PAUSE, _BACK = Action.ALERT.value, Action.PAUSE.value, Action.FALL_BACK.value

BOUNDS: tuple[Bound, ...] = (
    Bound(
        "train_rollout_logprob_abs_diff", _ONE, "mean |engine - learner| log-probability", "nats",
        "over", 0.5, 0.0, 100.0, _PAUSE, "the replies that it learns from are not those of this policy",
    ),
    Bound(
        "rollout_k3", _ONE, "k3 from engine to learner", "nats a token",
        "over", 0.5, 0.0, 100.0, _PAUSE, "the replies that it learns from are not those of this policy",
    ),
    Bound(
        "ratio_mean", _ONE, "the mean ratio of learner to engine", "",
        "over", 2.0, 1.0, 1000.0, _ALERT, "it should be 1: engine and learner differ by more than noise",
    ),
    Bound(
        "ess", _ONE, "the effective sample size", "of the tokens",
        "under", 0.4, 0.0, 1.0, _ALERT, "few tokens carry the step: the samples are too far off-policy",
    ),
    Bound(
        "clip_fraction", _ONE, "the share of clipped tokens", "",
        "over", 0.3, 0.0, 1.0, _ALERT,
        "the policy leaves the replies that it was sampled with: several passes over one batch, or steps too long",
    ),
    Bound(
        "mask_fraction", _ONE, "the share of tokens left out", "",
        "over", 0.3, 0.0, 1.0, _ALERT, "the behaviour weights are too large to learn from these replies",
    ),
    Bound(
        "staleness_mean", _ONE, "the mean staleness", "steps",
        "over", 3.0, 0.0, 1000.0, _ALERT, "turns are learned from long after the policy has moved on",
    ),
    Bound(
        "boundary_jump", _ONE, "the jump of |engine - learner| across a version boundary", "nats",
        "over", 0.3, 0.0, 100.0, _ALERT, "turns of older versions lie far from the policy of now",
    ),
    Bound(
        # few tokens rule k3: good steps of a small model reach 2 where the mean change is 0.3 nats
        "step_k3", _ONE, "k3 of the step", "nats a token",
        "over", 5.0, 0.0, 100.0, _BACK, "one step took the policy too far at once",
    ),
    Bound(
        "step_logprob_abs_diff", _ONE, "the change of log-probabilities by the step", "nats",
        "under", 1e-3, 0.0, 1.0, _ALERT, "≈ 0, the learning rate of {lr} is too low to learn anything", 2,
    ),
    Bound(
        "length_ratio", _ONE, "the length of replies against the steps before", "times",
        "over", 2.5, 1.0, 1000.0, _ALERT, "replies grow: a judge may be pleased by length",
    ),
    Bound(
        "repetition", _ONE, "the share of repeated 4-grams in replies", "",
        "over", 0.4, 0.0, 1.0, _PAUSE, "replies repeat themselves",
    ),
    Bound(
        "reward_same", _ONE, "the share of the commonest of the last rewards", "",
        "over", 0.98, 0.5, 1.0, _ALERT,
        "nearly all rewards are the same (mean {reward_mean}), so there is nothing to learn from them, "
        "or a judge that is pleased by anything",
    ),
    Bound(
        "sampling_shift", _TWO, "the distance between how trained turns and served turns are sampled", "(total variation)",
        "over", 0.5, 0.0, 1.0, _ALERT, "it learns from another distribution than it is served with",
    ),
    Bound(
        "temperature_gap", _TWO, "the gap between mean temperatures of trained and served turns", "",
        "over", 0.3, 0.0, 2.0, _ALERT, "it learns at another temperature than it is served with",
    ),
    Bound(
        "topic_excess", _TWO, "the shift of topics against the week before, beyond chance", "bits",
        "over", 0.1, 0.0, 1.0, _ALERT, "people talk of other things than what it was trained on",
    ),
    Bound(
        "let_through", _THREE, "the share of turns that may teach", "",
        "under", 0.02, 0.0, 1.0, _ALERT, "nearly all turns are filtered out: their reasons are on the drift page",
    ),
    Bound(
        "selection_shift", _THREE, "the distance between turns that may teach and all turns", "(total variation)",
        "over", 0.5, 0.0, 1.0, _ALERT, "the filters choose another kind of turn than people have",
    ),
    Bound(
        "judge_agreement", _THREE, "agreement of the judge with people", "",
        "under", 0.6, 0.0, 1.0, _PAUSE, "the judge says otherwise than the people it speaks for",
    ),
    Bound(
        "judge_kappa", _THREE, "Cohen's kappa of judge and people", "",
        "under", 0.2, -1.0, 1.0, _ALERT, "the judge agrees with people hardly more than chance would",
    ),
    Bound(
        "reward_retention", _THREE, "how much likelier people come back after rewarded conversations", "",
        "under", -0.2, -1.0, 1.0, _ALERT, "what the judge rewards is what people leave after",
    ),
)  # fmt: skip

BY_MEASURE: Mapping[str, Bound] = {bound.measure: bound for bound in BOUNDS}


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number that can be compared: not true or false, and finite, however many digits it has."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def resolve(config: Mapping[str, Any]) -> dict[str, Bound]:
    """Return the bounds that hold for a policy's configuration, by measure, without those that are off.

    InvalidInput names the field that is wrong.
    """
    wanted = config.get("drift", {})
    if not isinstance(wanted, dict):
        raise InvalidInput("drift is an object of measures", field="config.drift")
    found = dict(BY_MEASURE)
    for changes in (settings.DRIFT_BOUNDS, wanted):
        for measure, change in changes.items():
            if measure not in found:
                raise InvalidInput(f"there is no drift measure {measure!r}", field=f"config.drift.{measure}")
            found[measure] = _changed(found[measure], change)
    return {measure: bound for measure, bound in found.items() if bound.action != OFF}


def _changed(bound: Bound, change: Any) -> Bound:
    field = f"config.drift.{bound.measure}"
    if not isinstance(change, dict):
        raise InvalidInput(f"{bound.measure} is an object with limit, action or in_a_row", field=field)
    for name, value in change.items():
        at = f"{field}.{name}"
        if name == "limit":
            if not is_number(value) or not bound.low <= value <= bound.high:
                raise InvalidInput(
                    f"the limit of {bound.measure} lies between {bound.low:g} and {bound.high:g}", field=at
                )
            bound = replace(bound, limit=float(value))
        elif name == "action":
            allowed = [*Action.values, OFF]
            if value not in allowed:
                raise InvalidInput(f"the action is one of {', '.join(allowed)}", field=at)
            bound = replace(bound, action=value)
        elif name == "in_a_row":
            if type(value) is not int or not 1 <= value <= 100:
                raise InvalidInput("in_a_row lies between 1 and 100", field=at)
            bound = replace(bound, in_a_row=value)
        else:
            raise InvalidInput(f"a bound has limit, action and in_a_row, not {name!r}", field=at)
    return bound
