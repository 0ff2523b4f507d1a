"""Keep secrets out of logs, whatever wrote the line."""

import logging
import re

# at-<public id>-<secret>: the public id may be shown, the secret never.
_KEY = re.compile(r"\b(at-[A-Za-z0-9]{6,40})-[A-Za-z0-9_\-]{8,}")
_BEARER = re.compile(r"(?i)\b(bearer\s+)(?!at-)\S+")


def redact(text: str) -> str:
    """Return `text` with API key secrets and bearer tokens replaced by dots."""
    return _BEARER.sub(r"\1…", _KEY.sub(r"\1-…", text))


class RedactingFormatter(logging.Formatter):
    """Format as usual, then redact, so that exception texts and arguments are covered too."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the formatted, redacted line."""
        return redact(super().format(record))
