"""How a policy uses memory: as its own setting says, and where that is silent as the platform does."""

from dataclasses import dataclass

from django.conf import settings

from apps.memory.models import MemorySetting


@dataclass(frozen=True, slots=True)
class Use:
    """What holds for a policy after its setting and the platform's were asked."""

    in_prompt: bool
    """Whether its model is told what people asked for."""
    budget_tokens: int
    """The most that entries take of a prompt."""
    shadow: bool
    """Whether its weights take preferences over in quiet minutes."""
    shadow_tokens_per_day: int
    """The most that shadow rollouts, and choosing what they taught, write in 24 hours."""
    shadow_from_hour: int | None
    """Shadow rollouts begin at this hour, UTC; None: at any."""
    shadow_until_hour: int | None
    """… and end at this one; before the first: on the next day."""

    def teaches_at(self, hour: int) -> bool:
        """Return whether shadow rollouts may run in an hour of the day, UTC."""
        begin, end = self.shadow_from_hour, self.shadow_until_hour
        if begin is None or end is None:
            return True
        return begin <= hour < end if begin < end else hour >= begin or hour < end


def use_of(own: MemorySetting) -> Use:
    """Return how a policy with this setting of its own (`selectors.setting_of`) uses memory."""
    budget, most = own.budget_tokens, own.shadow_tokens_per_day
    return Use(
        in_prompt=own.in_prompt,
        budget_tokens=settings.MEMORY_BUDGET_TOKENS if budget is None else budget,
        shadow=settings.SHADOW_ENABLED and own.shadow,
        shadow_tokens_per_day=settings.SHADOW_TOKENS_PER_DAY if most is None else most,
        shadow_from_hour=own.shadow_from_hour,
        shadow_until_hour=own.shadow_until_hour,
    )
