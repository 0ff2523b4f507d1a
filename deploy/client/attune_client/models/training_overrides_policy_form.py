from typing import Literal

TrainingOverridesPolicyForm = Literal["cispo", "decoupled", "doubly_clipped", "gspo", "plain"]

TRAINING_OVERRIDES_POLICY_FORM_VALUES: set[TrainingOverridesPolicyForm] = {
    "cispo",
    "decoupled",
    "doubly_clipped",
    "gspo",
    "plain",
}


def check_training_overrides_policy_form(value: str) -> TrainingOverridesPolicyForm:
    if value in TRAINING_OVERRIDES_POLICY_FORM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_OVERRIDES_POLICY_FORM_VALUES!r}")
