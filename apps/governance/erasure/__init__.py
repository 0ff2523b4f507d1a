"""Deleting what was said: resumable, counted, and truthful about what had learned from it."""
