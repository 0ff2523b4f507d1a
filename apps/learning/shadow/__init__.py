"""Shadow rollouts: in quiet minutes the live adapter answers without being told what the teacher is told.

    nobody asks ── a lesson (what a person asked for) ── questions ── replies ── samples (source "shadow") ──
    the same schedule

The third source of samples, beside live turns and rollouts: turns of their own kind, a quota of their own.
"""
