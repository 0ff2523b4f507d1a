"""A tenant's rows as one archive: JSON lines, and the layout that TRL reads."""
