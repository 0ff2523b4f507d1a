def wishes(said, *, asked): return []
