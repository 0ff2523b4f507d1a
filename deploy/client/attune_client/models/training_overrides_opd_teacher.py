from typing import Literal

TrainingOverridesOpdTeacher = Literal["base", "policy"]

TRAINING_OVERRIDES_OPD_TEACHER_VALUES: set[TrainingOverridesOpdTeacher] = {
    "base",
    "policy",
}


def check_training_overrides_opd_teacher(value: str) -> TrainingOverridesOpdTeacher:
    if value in TRAINING_OVERRIDES_OPD_TEACHER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_OPD_TEACHER_VALUES!r}")
