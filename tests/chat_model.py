"""A model directory without a model: byte tokeniser, ChatML template that knows tools, sizes.

No torch needed.
"""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{% for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WITHOUT_TOOLS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
START, END = 1, 2
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def build_chat_model(directory: Path, *, template: str = TEMPLATE) -> Path:
    """Write the directory and return it. Every byte of text is one token; ids below 3 are control tokens."""
    directory.mkdir(parents=True, exist_ok=True)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate((*_SPECIAL, *letters))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in _SPECIAL])
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "chat_template.jinja").write_text(template, encoding="utf-8")
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}), encoding="utf-8"
    )
    # ids up to 49151, so that scripted engines may answer with those of the embedded model
    config = {"vocab_size": 49152, "max_position_embeddings": 8192, "eos_token_id": END}
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory


def ids_of(text: str) -> list[int]:
    """Return the ids of plain ASCII text (no control tokens)."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    shown = {" ": "\u0120", "\n": "\u010a"}
    return [len(_SPECIAL) + letters.index(shown.get(letter, letter)) for letter in text]


def chatml(*turns: tuple[str, str], answering: bool = True) -> list[int]:
    """Return the ids of a ChatML prompt of (role, text) turns."""
    ids: list[int] = []
    for role, text in turns:
        ids += [START, *ids_of(f"{role}\n{text}"), END, *ids_of("\n")]
    return [*ids, START, *ids_of("assistant\n")] if answering else ids
