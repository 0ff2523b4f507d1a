"""What changes preferences."""

from apps.memory.services.by_hand import add_preference, delete_preference, edit_preference
from apps.memory.services.collect import remember
from apps.memory.services.retire import bring_back, held_elsewhere, retire, tell_again
from apps.memory.services.setting import set_setting
from apps.memory.services.upkeep import forget_groundless, keep_pinned, words_go

__all__ = [
    "add_preference",
    "bring_back",
    "delete_preference",
    "edit_preference",
    "forget_groundless",
    "held_elsewhere",
    "keep_pinned",
    "remember",
    "retire",
    "set_setting",
    "tell_again",
    "words_go",
]
