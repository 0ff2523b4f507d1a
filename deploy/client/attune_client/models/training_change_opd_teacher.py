from typing import Literal

TrainingChangeOpdTeacher = Literal["base", "policy"]

TRAINING_CHANGE_OPD_TEACHER_VALUES: set[TrainingChangeOpdTeacher] = {
    "base",
    "policy",
}


def check_training_change_opd_teacher(value: str) -> TrainingChangeOpdTeacher:
    if value in TRAINING_CHANGE_OPD_TEACHER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_OPD_TEACHER_VALUES!r}")
