from typing import Literal

JudgementsListReward = Literal[-1, 0, 1]

JUDGEMENTS_LIST_REWARD_VALUES: set[JudgementsListReward] = {
    -1,
    0,
    1,
}


def check_judgements_list_reward(value: int) -> JudgementsListReward:
    if value in JUDGEMENTS_LIST_REWARD_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {JUDGEMENTS_LIST_REWARD_VALUES!r}")
