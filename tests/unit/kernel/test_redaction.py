import logging

import pytest

from kernel.redaction import RedactingFormatter, redact

KEY = "at-Abc123Def456Ghi7-s3cret_s3cret-s3cret"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        (f"key {KEY} came", "key at-Abc123Def456Ghi7-… came"),
        (f"Authorization: Bearer {KEY}", "Authorization: Bearer at-Abc123Def456Ghi7-…"),
        ("authorization: bearer sk-abcdef0123456789", "authorization: bearer …"),
        (f'{{"a": "{KEY}", "b": "{KEY}"}}', '{"a": "at-Abc123Def456Ghi7-…", "b": "at-Abc123Def456Ghi7-…"}'),
        ("at-Abc123Def456Ghi7 alone is public", "at-Abc123Def456Ghi7 alone is public"),
        ("look at-once and bear with me", "look at-once and bear with me"),
    ],
)
def test_secrets_are_replaced_and_nothing_else(text: str, safe: str) -> None:
    assert redact(text) == safe


def test_arguments_and_exceptions_of_log_lines_are_covered() -> None:
    formatter = RedactingFormatter("%(message)s")
    info = (ValueError, ValueError(f"bad {KEY}"), None)
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "got %s", (KEY,), info)
    line = formatter.format(record)
    assert "s3cret" not in line
    assert "got at-Abc123Def456Ghi7-…" in line
    assert "bad at-Abc123Def456Ghi7-…" in line
