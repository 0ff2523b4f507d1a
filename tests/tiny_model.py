"""A chat model of a few hundred kilobytes, made on the spot:
random weights, real tokenizer, real chat template.

It answers nonsense, exactly: what the engine and the trainer compute for it must agree to the last digits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

CHAT_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CORPUS = (
    "You are a helpful assistant. What is an earthquake? How do rainbows form? How do I boil an egg?",
    "That is much too long for me. Please just give me one short sentence. Thank you, that is better.",
    "An earthquake is a sudden shaking of the ground. A rainbow forms when light passes through rain.",
    "system user assistant tool developer content message role",
)
VOCAB = 320


def build_tiny_model(directory: Path, *, seed: int = 0, family: str = "llama", tied: bool = True) -> Path:
    """Writes a plain transformers directory (float32) and returns it.

    The same arguments give the same weights.

    Two layers, hidden 64, 4 heads of 16 with 2 key-value heads: shapes that SGLang's torch_native attention
    takes. `family` is llama, qwen2 or qwen3.
    """
    import torch
    import transformers

    directory.mkdir(parents=True, exist_ok=True)
    build_tokenizer().save_pretrained(directory)
    name = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[family]
    config = getattr(transformers, f"{name}Config")(
        vocab_size=VOCAB,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=2048,
        initializer_range=0.1,
        tie_word_embeddings=tied,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = getattr(transformers, f"{name}ForCausalLM")(config)
        for parameter_name, parameter in model.named_parameters():
            # norms of exactly 1 and biases of exactly 0 would hide a mix-up of them
            if "norm" in parameter_name:
                torch.nn.init.normal_(parameter, 1.0, 0.1)
            elif "bias" in parameter_name:
                torch.nn.init.normal_(parameter, 0.0, 0.1)
    model.generation_config = transformers.GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0)
    model.save_pretrained(directory)
    return directory


def build_tokenizer() -> Any:
    """A byte-level BPE tokenizer with ChatML turns: every text has ids, and `<|im_end|>` ends a turn."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast
