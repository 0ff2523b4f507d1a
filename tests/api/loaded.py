"""Versions that are loaded and proven on an engine."""

from apps.adapters.models import AdapterVersion
from apps.engines.models import DesiredAdapter, Engine, LoadedAdapter, LoadState
from kernel.tenancy import tenant_scope
from tests.fake_engine import FakeEngine


def make_loaded(version: AdapterVersion, engine: FakeEngine) -> None:
    """Record that the version is on the engine and answered its probe there."""
    engine.adapters[version.served_name] = version.path
    with tenant_scope(version.tenant_id):
        wanted, _ = DesiredAdapter.objects.get_or_create(
            served_name=version.served_name,
            defaults={
                "path": version.path,
                "sha256": version.sha256,
                "rank": version.rank,
                "probe": {},
            },
        )
        LoadedAdapter.objects.create(
            engine=Engine.objects.get(url=engine.url), adapter=wanted, state=LoadState.PROBED, boot_id="1"
        )
