from typing import Literal

TrainingChangePolicyForm = Literal["cispo", "decoupled", "doubly_clipped", "gspo", "plain"]

TRAINING_CHANGE_POLICY_FORM_VALUES: set[TrainingChangePolicyForm] = {
    "cispo",
    "decoupled",
    "doubly_clipped",
    "gspo",
    "plain",
}


def check_training_change_policy_form(value: str) -> TrainingChangePolicyForm:
    if value in TRAINING_CHANGE_POLICY_FORM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CHANGE_POLICY_FORM_VALUES!r}")
