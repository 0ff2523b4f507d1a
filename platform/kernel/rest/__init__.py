"""What every room's REST face (`api.py`) stands on: who asks, problems, pages, repeats."""
