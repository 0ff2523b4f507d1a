"""LoRA on Megatron's linears through PEFT: same configuration, same arithmetic, same files."""
