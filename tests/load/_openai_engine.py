"""The fake engine, also in OpenAI's words: what a proxy that knows nothing of SGLang can ask.

`python -m tests.load._openai_engine --port P --tokens N`: both routes give the same N words, without delay.
"""

import argparse
import contextlib
import os
import threading

import orjson
from aiohttp import web

from tests.fake_engine import FakeEngine


class OpenAIEngine(FakeEngine):
    """Answers `/v1/chat/completions` with the words that `/generate` gives, a frame for each."""

    def routes(self) -> list[web.RouteDef]:
        """Return all routes."""
        return [*super().routes(), web.post("/v1/chat/completions", self._chat)]

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        body = orjson.loads(await http.read())
        words = [token.text for token in self.reply(None)]  # type: ignore[arg-type]
        head = {"id": "chatcmpl-1", "created": 1, "model": body["model"], "system_fingerprint": None}
        usage = {"prompt_tokens": 40, "completion_tokens": len(words), "total_tokens": 40 + len(words)}
        if not body.get("stream"):
            message = {"role": "assistant", "content": "".join(words)}
            choices = [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}]
            whole = {**head, "object": "chat.completion", "choices": choices, "usage": usage}
            return web.Response(body=orjson.dumps(whole), content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        deltas: list[tuple[dict[str, str], str | None]] = [({"content": word}, None) for word in words]
        for delta, finish in [({"role": "assistant", "content": ""}, None), *deltas, ({}, "stop")]:
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
            chunk = {**head, "object": "chat.completion.chunk", "choices": choices}
            await response.write(b"data: " + orjson.dumps(chunk) + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response


def main() -> None:
    """Serve until the parent is gone."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    options = parser.parse_args()
    parent = os.getppid()
    with OpenAIEngine(port=options.port) as engine, contextlib.suppress(KeyboardInterrupt):
        engine.say(*(" word" for _ in range(options.tokens)))
        while os.getppid() == parent:
            threading.Event().wait(1.0)
            engine.requests.clear()


if __name__ == "__main__":
    main()
