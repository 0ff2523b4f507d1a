"""Places for distinct adapters in an engine's batch, given out fairly among policies and gateway processes.

async with adapter_slots().seat(engine=url, adapter=name, tenant=tenant_id):
    ...generate...
"""

from apps.engines.slots.seats import AdapterSlots, Seat, adapter_slots

__all__ = ["AdapterSlots", "Seat", "adapter_slots"]
