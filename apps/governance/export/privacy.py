"""What an archive says where a policy does not want personal data to be seen."""

import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from apps.adapters.models import Policy
from apps.judging import personal_data
from apps.judging.models import JudgeSettings, PersonalData
from apps.judging.rules import rules_of

_SHORT = 2_000  # characters of a text whose redaction is worth remembering: a session repeats its messages


class Privacy:
    """Each policy's setting, read once; the tenant's own counts for what belongs to no policy.

    `redact` and `drop` both blank what is found: a file leaves the platform, and neither setting lets that
    out.
    """

    def __init__(self) -> None:
        self._modes: dict[uuid.UUID | None, PersonalData] = {
            policy.pk: rules_of(policy).personal_data for policy in Policy.objects.all()
        }
        tenants = JudgeSettings.objects.filter(policy=None).first()
        self._modes[None] = PersonalData((tenants and tenants.personal_data) or PersonalData.OFF)

    def mode(self, policy_id: uuid.UUID | None) -> PersonalData:
        """Return a policy's setting; the tenant's where there is no policy."""
        return self._modes.get(policy_id, self._modes[None])

    def looks(self, policy_id: uuid.UUID | None) -> bool:
        """Whether anything is looked for."""
        return self.mode(policy_id) != PersonalData.OFF

    def blanked(self, policy_id: uuid.UUID | None, value: Any) -> Any:
        """Return a JSON value as an archive may hold it."""
        return _redacted(value) if self.looks(policy_id) else value

    def described(self) -> dict[str, str]:
        """Return the settings that were applied, by policy id; "*" is the tenant's."""
        return {str(key or "*"): mode.value for key, mode in self._modes.items()}


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return _remembered(value) if len(value) <= _SHORT else personal_data.redact(value)
    if isinstance(value, Mapping):
        return {name: _redacted(item) for name, item in value.items()}
    return [_redacted(item) for item in value] if isinstance(value, list | tuple) else value


@lru_cache(maxsize=2_000)
def _remembered(text: str) -> str:
    return personal_data.redact(text)
