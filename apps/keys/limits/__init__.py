"""How much a key and a tenant may ask: requests and tokens in a minute, and requests at once.

permit = await limits.take(tenant_id=tenant, key_id=key, rules=rules, tokens=expected)
try: ...answer, permit.used = tokens that it really took...
finally: limits.give_back(permit)
"""

from apps.keys.limits.limits import Limits
from apps.keys.limits.rules import Allowance, Permit, Rules

__all__ = ["Allowance", "Limits", "Permit", "Rules"]
