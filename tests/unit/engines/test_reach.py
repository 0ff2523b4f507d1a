"""Engines tell whoever reaches them their keys, and read pickles:
nobody from outside may, and nobody sends any."""

from pathlib import Path

import yaml

from embedded.engine import Engine

ROOT = Path(__file__).resolve().parents[3]


def test_engines_listen_where_no_tenant_is(tmp_path: Path) -> None:
    # an engine answers /server_info with both its keys in clear
    engine = Engine(model=tmp_path, port=1, api_key="k", admin_key="a")
    assert engine.options()["host"] == "127.0.0.1"
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert "ports" not in services["engine"]
    assert services["engine"].get("network_mode") is None


def test_adapters_never_travel_as_pickles() -> None:
    rooms = ("apps", "workers", "platform", "trainer")
    sources = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert len(sources) > 100
    found = [
        str(path)
        for path in sources
        if any(word in path.read_text(encoding="utf-8") for word in ("lora_adapter_from_tensors", "pickle"))
    ]
    assert found == []
