"""Memory and shadow rollouts of a policy: switched here, refused where the platform has none."""

from collections.abc import Iterable

from django.conf import settings

from apps.adapters.models import Policy
from apps.evaluation.personalization.methods import Method
from apps.memory.services import set_setting
from kernel.errors import InvalidInput


def refuse_what_is_missing(methods: Iterable[Method]) -> None:
    """Raise InvalidInput for a method that needs what this platform does not have."""
    needy = [method.name for method in methods if method.shadow]
    if needy and not getattr(settings, "SHADOW_ENABLED", False):
        raise InvalidInput(
            f"{', '.join(needy)}: shadow rollouts are switched off on this platform (SHADOW_ENABLED)",
            field="methods",
        )


def set_switches(policy: Policy, *, memory: bool | None, shadow: bool, actor: str) -> None:
    """Switch a policy's memory in prompts (None leaves it) and its shadow rollouts, in its tenant's scope."""
    told = {} if memory is None else {"in_prompt": memory}
    set_setting(policy=policy, actor=actor, shadow=shadow, **told)
