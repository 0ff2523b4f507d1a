"""Adapter files as a trainer leaves them, as far as the ledger looks at them."""

import hashlib
from pathlib import Path

from django.conf import settings

from apps.learning.runs import Claim


def write_files(claim: Claim) -> tuple[str, str]:
    """Write a version's files for a claimed run; returns their directory and the version hash."""
    name = f"{claim.number}-{claim.run.id.hex[-8:]}-{claim.fence}"
    directory = Path(settings.ADAPTER_STORE) / str(claim.policy.tenant_id) / str(claim.policy.id) / name
    directory.mkdir(parents=True)
    weights, config = claim.run.id.bytes + bytes([claim.fence]), b"{}"
    (directory / "adapter_model.safetensors").write_bytes(weights)
    (directory / "adapter_config.json").write_bytes(config)
    return str(directory), hashlib.sha256(weights + config).hexdigest()
