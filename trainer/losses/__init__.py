"""Losses, one idea a file: pure functions over flat token tensors [N],
differentiable in `logprob` (and `kl`) only."""
