from typing import Literal

TrainingConfigPolicyForm = Literal["cispo", "decoupled", "doubly_clipped", "gspo", "plain"]

TRAINING_CONFIG_POLICY_FORM_VALUES: set[TrainingConfigPolicyForm] = {
    "cispo",
    "decoupled",
    "doubly_clipped",
    "gspo",
    "plain",
}


def check_training_config_policy_form(value: str) -> TrainingConfigPolicyForm:
    if value in TRAINING_CONFIG_POLICY_FORM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TRAINING_CONFIG_POLICY_FORM_VALUES!r}")
