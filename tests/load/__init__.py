"""Benchmarks: one module each, run by `make bench BENCH=name`. No timing is asserted in a test."""
