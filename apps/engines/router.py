"""A sglang-router (0.3.2, `--enable-igw`) in front:
which requests it passes on whole, and how it is told of engines.

Each engine is a model of its own there, named by the engine's address: a request that names the model goes to
that engine or, where it is not well, to none. The router's own ways to choose (an index into the list of
those that are well in no promised order, a hash ring, a sticky key) all end at another engine when one is
away: one that has not proven the adapter.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import aiohttp
from django.conf import settings

logger = logging.getLogger(__name__)

_PASSED_ON: Final = {
    # of SGLang's sampling parameters those that the router knows: it leaves out the others without a word
    *("temperature", "top_p", "top_k", "min_p", "n", "max_new_tokens", "min_new_tokens", "ignore_eos"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty", "json_schema", "regex", "ebnf"),
    *("stop", "stop_token_ids", "no_stop_trim", "skip_special_tokens", "sampling_seed"),
}
_ANSWER_S = 5.0
_KNOWN_S = 5.0
"""How long the router may take to register engines that are there."""
_LOOK_AGAIN_S = 0.1


def passed_on(sampling: Mapping[str, Any]) -> bool:
    """Return whether the router would pass on all of `sampling` (SGLang's names), as it is."""
    return sampling.keys() <= _PASSED_ON and int(sampling.get("sampling_seed") or 0) >= 0


def tell_router(ready: Sequence[str], *, known: Collection[str]) -> None:
    """Bring the router, where there is one, in line:
    it serves each of the `ready` engines, and forgets all but `known`.

    Returns when it says that they are well, or some seconds later. A router that is away is logged: requests
    find it away as well, and the next look at the engines tries again.
    """
    if settings.ENGINE_ROUTER_URL:
        asyncio.run(_tell(ready, known))


async def _tell(ready: Sequence[str], known: Collection[str]) -> None:
    headers = {"Authorization": f"Bearer {settings.ENGINE_API_KEY}"} if settings.ENGINE_API_KEY else {}
    try:
        async with aiohttp.ClientSession(
            settings.ENGINE_ROUTER_URL,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=_ANSWER_S),
            raise_for_status=True,
            trust_env=False,
        ) as router:
            for url, worker in (await _workers(router)).items():
                ours = worker["model_id"] == url
                # one that the router was started with has the name of its model, as all such have
                if (ours and url not in known) or (not ours and url in ready):
                    async with router.delete(f"/workers/{worker['id']}"):
                        pass
            await _introduce(router, ready)
    except (aiohttp.ClientError, OSError, ValueError, LookupError) as error:
        logger.warning("the router was not told of the engines: %s: %s", type(error).__name__, error)


async def _introduce(router: aiohttp.ClientSession, urls: Sequence[str]) -> None:
    end = time.monotonic() + _KNOWN_S
    asked: set[str] = set()
    while True:
        known = await _workers(router)
        missing = [url for url in urls if not _knows(known, url)]
        if not missing:
            return
        for url in missing:
            if url not in known and url not in asked:
                asked.add(url)  # registering goes on when the answer is there
                body = {"url": url, "model_id": url, "api_key": settings.ENGINE_API_KEY or None}
                async with router.post("/workers", json=body):
                    pass
        if time.monotonic() > end:
            logger.warning("the router does not pass on to %s yet", ", ".join(missing))
            return
        await asyncio.sleep(_LOOK_AGAIN_S)


def _knows(known: Mapping[str, Mapping[str, Any]], url: str) -> bool:
    worker = known.get(url)
    return worker is not None and worker["model_id"] == url and bool(worker["is_healthy"])


async def _workers(router: aiohttp.ClientSession) -> dict[str, dict[str, Any]]:
    async with router.get("/workers") as response:
        return {worker["url"]: worker for worker in (await response.json())["workers"]}
