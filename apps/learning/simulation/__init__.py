"""The schedule on a virtual clock: the same rules as in Postgres, over a trace,
in seconds instead of days."""
