"""What turns sum up to, by stretches of time:
kept once a stretch is over, thrown away by whatever changes a turn of it.

`stretches` cuts time up, `histogram` says how durations are counted, `sums` reads a stretch from what is kept
and from the turns themselves, `filling` keeps it.
"""
