"""How far apart are who samples, who learns and who is served:
three gauges, their bounds, what a crossing does.

`bounds` says how far is too far, `measures` and `topics` are the arithmetic, `rollout`, `deploy` and
`selection` read one gauge each from the ledger, `readings` stores them, `crossings` decides, `pauses` and
`actions` act.
"""
