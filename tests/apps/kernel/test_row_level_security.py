"""The second wall: what Postgres itself refuses to the application's role, whatever the code forgot."""

# ruff: noqa: S608  # the names of tables and columns come from the models

import uuid

import psycopg
import pytest
from django.apps import apps
from django.db import DatabaseError, connection, models, transaction

from apps.accounts.models import Tenant
from kernel.roles import APP_ROLE, OWNER_ROLE, SYSTEM_ROLE
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.console.rows import Rows, fill

# the tables that hold rows of tenants, with the column that names the tenant
TABLES = {
    Tenant._meta.db_table: "id",
    **{
        model._meta.db_table: field.column
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey) and field.related_model is Tenant
    },
}
tables = pytest.mark.parametrize("table", sorted(TABLES))


@pytest.fixture
def two(db: None) -> tuple[Rows, Rows]:
    return fill("acme"), fill("globex")


def _value(statement: str, *values: object) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone()
    assert row is not None
    return row[0]


def _changed(statement: str, *values: object) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.rowcount


def _refused(statement: str, *values: object) -> None:
    with pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
        _changed(statement, *values)


def test_the_tables_of_tenants_are_known() -> None:
    assert len(TABLES) >= 19


@tables
def test_the_table_is_protected_for_both_roles(owner_connection: psycopg.Connection, table: str) -> None:
    on, owner = owner_connection.execute(
        "SELECT relrowsecurity, relowner::regrole::text FROM pg_class WHERE oid = %s::regclass", [table]
    ).fetchone() or (None, None)
    assert (on, owner) == (True, OWNER_ROLE)
    rows = owner_connection.execute(
        "SELECT policyname, roles::text[], permissive, cmd, qual, with_check FROM pg_policies WHERE tablename = %s",
        [table],
    ).fetchall()
    policies = {name: rest for name, *rest in rows}
    assert set(policies) == {"tenant_rows", "all_rows"}
    own = f"({TABLES[table]} = (NULLIF(current_setting('attune.tenant'::text, true), ''::text))::uuid)"
    assert policies["tenant_rows"] == [[APP_ROLE], "PERMISSIVE", "ALL", own, own]
    assert policies["all_rows"] == [[SYSTEM_ROLE], "PERMISSIVE", "ALL", "true", "true"]


@pytest.mark.django_db
def test_the_roles_have_no_way_around(owner_connection: psycopg.Connection) -> None:
    rows = owner_connection.execute(
        "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcanlogin FROM pg_roles"
        " WHERE rolname = ANY(%s) ORDER BY rolname",
        [[APP_ROLE, OWNER_ROLE, SYSTEM_ROLE]],
    ).fetchall()
    assert rows == [
        (role, False, False, False, False) for role in sorted((APP_ROLE, OWNER_ROLE, SYSTEM_ROLE))
    ]
    owned = owner_connection.execute(
        "SELECT count(*) FROM pg_class WHERE relowner IN (%s::regrole, %s::regrole)", [APP_ROLE, SYSTEM_ROLE]
    ).fetchone()
    assert owned == (0,)


@pytest.mark.django_db
def test_the_application_connects_as_its_role() -> None:
    assert _value("SELECT current_user") == APP_ROLE


def test_without_a_tenant_raw_sql_sees_and_changes_nothing(two: tuple[Rows, Rows]) -> None:
    for table, column in TABLES.items():
        with system_scope("test"):
            there = _value(f"SELECT count(*) FROM {table}")
        assert there, f"`fill` makes no row in {table}: add one"
        assert _value(f"SELECT count(*) FROM {table}") == 0, table
        if table != "kernel_auditentry":  # which nobody may change or delete at all
            assert _changed(f"UPDATE {table} SET {column} = {column}") == 0, table
            assert _changed(f"DELETE FROM {table}") == 0, table


def test_one_tenant_cannot_see_change_or_make_rows_of_another(two: tuple[Rows, Rows]) -> None:
    ours, theirs = (rows.tenant.pk for rows in two)
    for table, column in TABLES.items():
        with tenant_scope(ours):
            assert _value(f"SELECT count(*) FROM {table} WHERE {column} = %s", ours) != 0, table
            assert _value(f"SELECT count(*) FROM {table} WHERE {column} <> %s", ours) == 0, table
            if table != "kernel_auditentry":
                assert _changed(f"DELETE FROM {table} WHERE {column} = %s", theirs) == 0, table
                _refused(f"UPDATE {table} SET {column} = %s WHERE {column} = %s", theirs, ours)
            columns = [field.column for field in _model(table)._meta.concrete_fields]
            values = ", ".join("%s::uuid" if name == column else name for name in columns)
            _refused(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} LIMIT 1", theirs
            )
        with system_scope("test"):
            assert _value(f"SELECT count(*) FROM {table} WHERE {column} = %s", theirs) != 0, table


def test_a_tenant_that_does_not_exist_sees_nothing(two: tuple[Rows, Rows]) -> None:
    with tenant_scope(uuid.uuid4()):
        assert all(_value(f"SELECT count(*) FROM {table}") == 0 for table in TABLES)


def test_the_manager_says_the_same_as_the_database(two: tuple[Rows, Rows]) -> None:
    ours, theirs = two
    model = type(ours.turn)
    with tenant_scope(ours.tenant.pk):
        assert model.objects.count() == 2
        assert not model.objects.filter(pk=theirs.turn.pk).exists()
        with pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
            type(ours.policy).objects.create(tenant=theirs.tenant, name="ours", base_model="tiny")
    with tenant_scope(theirs.tenant.pk):
        assert list(type(ours.policy).objects.values_list("name", flat=True)) == ["default"]


def test_a_new_row_takes_the_tenant_in_scope(two: tuple[Rows, Rows]) -> None:
    ours, _ = two
    with tenant_scope(ours.tenant.pk):
        made = type(ours.policy).objects.create(name="second", base_model="tiny")
    assert made.tenant_id == ours.tenant.pk


def _model(table: str) -> type[models.Model]:
    return next(model for model in apps.get_models() if model._meta.db_table == table)
