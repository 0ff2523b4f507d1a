"""The schedule's rules as pure functions over small dataclasses:
the ledger's code and the simulator call the same."""
