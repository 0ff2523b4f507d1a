"""What the processes that answer people leave to the garbage collector: hardly anything of what is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chat_model import build_chat_model

ROOT = Path(__file__).resolve().parents[3]
WEB = "import config.asgi_web"
GATEWAY = """
import asyncio
from config.asgi_gateway import application

async def start():
    heard, said = asyncio.Queue(), asyncio.Queue()
    life = asyncio.create_task(application({"type": "lifespan"}, heard.get, said.put))
    await heard.put({"type": "lifespan.startup"})
    assert (await said.get())["type"] == "lifespan.startup.complete"
    life.cancel()

asyncio.run(start())
"""
COUNT = "import gc; print(gc.get_freeze_count(), len(gc.get_objects()))"


@pytest.mark.parametrize("start", [WEB, GATEWAY], ids=["web", "gateway"])
def test_a_full_collection_walks_little_of_what_is_loaded(start: str, tmp_path: Path) -> None:
    env = os.environ | {
        "SECRET_KEY": "tests-only",
        "DJANGO_SETTINGS_MODULE": "config.settings.test",
        "MODEL_PATH": str(build_chat_model(tmp_path)),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
    }
    told = subprocess.run(
        [sys.executable, "-c", f"{start}\n{COUNT}"],
        cwd=ROOT, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    left_alone, walked = map(int, told.stdout.split()[-2:])
    assert left_alone > 100_000
    assert walked < left_alone / 10


def test_every_page_of_ours_is_compiled_before_the_first_is_asked_for() -> None:
    code = f"""{WEB}
from django.template import engines
from pathlib import Path
kept = set(engines["django"].engine.template_loaders[0].get_template_cache)
ours = {{str(path.relative_to("frontend/templates")) for path in Path("frontend/templates").rglob("*.html")}}
print(len(ours), sorted(ours - kept))
"""
    env = os.environ | {"SECRET_KEY": "tests-only", "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    count, missing = told.stdout.split(maxsplit=1)
    assert int(count) > 50
    assert missing.strip() == "[]"
