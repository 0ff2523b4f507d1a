"""What a judge of cues sees."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cue:
    """Something seen, and how much it speaks for (+) or against (-) the reply."""

    name: str
    weight: float
