"""What can stop the trainer, each with a code that `StepReport.code` carries."""

from __future__ import annotations


class TrainerError(Exception):
    """Root of the trainer's own errors."""

    code = "internal"


class UnsupportedModelError(TrainerError):
    """The model directory is not of a shape that would be computed exactly."""

    code = "unsupported_model"


class StepRefusedError(TrainerError):
    """A bound was passed: not finite, norm or KL. Nothing was written."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class StepFailedError(TrainerError):
    """The surroundings failed (disk, parent's files): the same request may be tried again."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
