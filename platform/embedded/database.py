"""Make the database and its roles: idempotent, from any URL whose user may create roles.

- `attune_owner` owns the tables; migrations run as it.
- `attune_app` and `attune_system` read and write rows under row-level security; processes run as one of them.
- A login role may become those two and nothing else. It owns nothing and inherits nothing.

None of them is a superuser, none bypasses row-level security.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from embedded.errors import CannotStart
from kernel.roles import APP_ROLE, OWNER_ROLE, SYSTEM_ROLE

Connection = psycopg.Connection[tuple[Any, ...]]

# Two starts at the same time change the same catalogue rows; whoever comes second tries again.
_RACES = (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject, psycopg.errors.InternalError_)


@dataclass(frozen=True, slots=True)
class Login:
    """A role to log in as, made by `bootstrap`."""

    name: str
    password: str


def bootstrap(url: str, *, login: Login | None = None) -> str:
    """Make what is missing of the database in `url` and its roles; returns the URL that processes use.

    With `login` that is the login's own URL, which cannot become the owner. Without, the user of `url` itself
    is allowed to become the three roles.
    """
    for attempt in range(10):
        try:
            _ensure_database(url)
            with psycopg.connect(url, connect_timeout=10) as connection:
                _ensure_roles(connection, login)
                _ensure_grants(connection)
        except _RACES:
            time.sleep(0.1 * (attempt + 1))
            continue
        except psycopg.errors.InsufficientPrivilege as error:
            raise CannotStart(
                f"the user in DATABASE_URL may not prepare the database ({str(error).strip()}): "
                "use one that may create roles"
            ) from error
        except psycopg.OperationalError as error:
            raise CannotStart(f"the database does not answer: {str(error).strip()}") from error
        return url if login is None else with_user(url, login)
    raise CannotStart("somebody else keeps changing the database's roles: try again")


def bootstrap_for(owner_url: str, url: str) -> None:
    """Make what is missing for processes that use `url`, through `owner_url`; the two may be the same."""
    login = urlsplit(url)
    same = (login.username, login.path) == (urlsplit(owner_url).username, urlsplit(owner_url).path)
    bootstrap(
        owner_url, login=None if same else Login(unquote(login.username or ""), unquote(login.password or ""))
    )


def with_user(url: str, login: Login) -> str:
    """Return `url` with another user and password."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(
        parts._replace(netloc=f"{quote(login.name, safe='')}:{quote(login.password, safe='')}@{place}")
    )


def with_database(url: str, name: str) -> str:
    """Return `url` with another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{quote(name)}"))


def _ensure_database(url: str) -> None:
    try:
        psycopg.connect(url, connect_timeout=10).close()
        return
    except psycopg.OperationalError as error:
        # libpq reports a refused start-up without an SQLSTATE of its own
        if "does not exist" not in str(error) or "database" not in str(error):
            raise
    name = urlsplit(url).path.lstrip("/")
    with psycopg.connect(with_database(url, "postgres"), autocommit=True, connect_timeout=10) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _ensure_roles(connection: Connection, login: Login | None) -> None:
    existing = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles")}
    for role in (OWNER_ROLE, APP_ROLE, SYSTEM_ROLE):
        if role not in existing:
            connection.execute(
                sql.SQL(
                    "CREATE ROLE {} NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB NOINHERIT"
                ).format(sql.Identifier(role))
            )
    if login is not None:
        if login.name not in existing:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN NOINHERIT").format(sql.Identifier(login.name)))
        connection.execute(
            sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                sql.Identifier(login.name), sql.Literal(login.password)
            )
        )
        for role in (APP_ROLE, SYSTEM_ROLE):
            _allow(connection, role, to=login.name)
    row = connection.execute(
        "SELECT current_user::text, rolsuper FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if row is not None and not row[1]:  # a superuser may become anybody
        for role in (OWNER_ROLE, APP_ROLE, SYSTEM_ROLE):
            _allow(connection, role, to=row[0])


def _allow(connection: Connection, role: str, *, to: str) -> None:
    """Let `to` become `role` by saying so, without inheriting its rights."""
    found = connection.execute("SELECT pg_has_role(%s, %s, 'MEMBER')", (to, role)).fetchone()
    modern = connection.info.server_version >= 160000
    if modern:
        found = connection.execute("SELECT pg_has_role(%s, %s, 'SET')", (to, role)).fetchone()
    if found is not None and found[0]:
        return
    statement = "GRANT {} TO {} WITH INHERIT FALSE, SET TRUE" if modern else "GRANT {} TO {}"
    connection.execute(sql.SQL(statement).format(sql.Identifier(role), sql.Identifier(to)))


def _ensure_grants(connection: Connection) -> None:
    roles = sql.SQL(", ").join([sql.Identifier(APP_ROLE), sql.Identifier(SYSTEM_ROLE)])
    owner = sql.Identifier(OWNER_ROLE)
    database = sql.Identifier(connection.info.dbname)
    for statement in (
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "GRANT CREATE, CONNECT, TEMPORARY ON DATABASE {database} TO {owner}",
        "GRANT CONNECT ON DATABASE {database} TO {roles}",
        "GRANT USAGE, CREATE ON SCHEMA public TO {owner}",
        "GRANT USAGE ON SCHEMA public TO {roles}",
    ):
        connection.execute(sql.SQL(statement).format(database=database, owner=owner, roles=roles))
    connection.execute(sql.SQL("SET LOCAL ROLE {}").format(owner))
    for statement in (
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {roles}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT, UPDATE ON SEQUENCES TO {roles}",
        # a function runs with its owner's rights only for those it is meant for
        "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT EXECUTE ON FUNCTIONS TO {roles}",
    ):
        connection.execute(sql.SQL(statement).format(roles=roles))


def main() -> int:
    """Prepare the database of DATABASE_URL through DATABASE_OWNER_URL (or itself):
    for deployments, before `migrate`."""
    url = os.environ["DATABASE_URL"]
    try:
        bootstrap_for(os.environ.get("DATABASE_OWNER_URL") or url, url)
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
