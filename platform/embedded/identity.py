"""Run a program as somebody else than root, even where that user could not walk to its files.

Postgres refuses to run as root. As root we hand it to an ordinary system user. Where the environment or the
home lies under a directory that only root may enter, that user could not even reach the program; instead of
copying it around or opening directories, the process keeps one kernel capability: to pass directories it
could not enter.
"""

from __future__ import annotations

import ctypes
import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import CannotStart

_PR_SET_SECUREBITS = 28
_NO_SETUID_FIXUP = 1 << 2
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAPABILITY_VERSION_3 = 0x20080522
_DAC_OVERRIDE = 1
_DAC_READ_SEARCH = 2  # read and walk only; containers often withhold it while they grant the wider one
_CANDIDATES = ("postgres", "nobody", "daemon")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Identity:
    """A user to run as; `capability` is the one kernel capability kept, if any."""

    uid: int
    gid: int
    capability: int | None = None

    def assume(self) -> None:
        """Become this user for good. Runs in a child between fork and exec."""
        if self.capability is not None:
            # keeps capabilities over the change of user, and lets access(2) count them,
            # which Postgres asks first
            _check(_libc.prctl(_PR_SET_SECUREBITS, _NO_SETUID_FIXUP, 0, 0, 0))
        os.setgroups([])
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)
        if self.capability is not None:
            mask = 1 << self.capability
            header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
            # effective, permitted, inheritable for capabilities 0-31, then the same for 32-63
            sets = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
            _check(_libc.capset(header, sets))
            _check(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, self.capability, 0, 0))


def for_files(*paths: Path, owner_of: Path | None = None) -> Identity | None:
    """Return whom to run as so that `paths` can be reached, or None for the current user (who is not root).

    `owner_of`: an existing directory whose owner is taken, so that data stays readable to its own server.
    """
    if os.geteuid() != 0:
        return None
    user = _user(owner_of)
    for capability in (None, _DAC_READ_SEARCH, _DAC_OVERRIDE):
        identity = Identity(user.pw_uid, user.pw_gid, capability)
        if all(_reaches(identity, path) for path in paths):
            return identity
    raise CannotStart(
        f"the user {user.pw_name} cannot reach {paths[0]}: move ATTUNE_HOME and the checkout to a place that every "
        "user may enter, start as an ordinary user, or set DATABASE_URL"
    )


def _user(owner_of: Path | None) -> pwd.struct_passwd:
    if owner_of is not None and owner_of.exists():
        uid = owner_of.stat().st_uid
        try:
            found = pwd.getpwuid(uid)
        except KeyError:
            raise CannotStart(
                f"{owner_of} belongs to user {uid}, who does not exist here: chown it"
            ) from None
        if found.pw_uid != 0:
            return found
    for name in _CANDIDATES:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise CannotStart(
        "there is no user to run Postgres as (it refuses root): add one named postgres, or set DATABASE_URL"
    )


def _reaches(identity: Identity, path: Path) -> bool:
    """Try it in a child: only the kernel knows."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            identity.assume()
            status = 0 if os.access(path, os.R_OK | os.X_OK) else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
