"""Settings and the entry points of the two web processes."""
