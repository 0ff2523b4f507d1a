"""The frozen base: a megatron-core GPTModel read from a plain transformers directory."""
