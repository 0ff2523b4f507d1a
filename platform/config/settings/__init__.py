"""One module per situation; each starts from `base`."""
