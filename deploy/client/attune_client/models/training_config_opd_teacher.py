from typing import Literal

TrainingConfigOpdTeacher = Literal["base", "policy"]

TRAINING_CONFIG_OPD_TEACHER_VALUES: set[TrainingConfigOpdTeacher] = {
    "base",
    "policy",
}


def check_training_config_opd_teacher(value: str) -> TrainingConfigOpdTeacher:
    if value in TRAINING_CONFIG_OPD_TEACHER_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_OPD_TEACHER_VALUES!r}")
