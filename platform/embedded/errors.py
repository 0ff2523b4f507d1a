"""What stops the embedded default from starting: one line that says what is wrong and how to mend it."""

from kernel.errors import AttuneError


class CannotStart(AttuneError):
    """A part cannot start, for a reason that the person at the keyboard can mend."""

    code = "cannot_start"
    status = 503
