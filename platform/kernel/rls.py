"""Row-level security as migration operations: the second wall between tenants."""

from django.db import migrations

from kernel.roles import APP_ROLE, SYSTEM_ROLE

# After set_config(..., true) has been undone a setting reads '' and not NULL: hence NULLIF.
_CURRENT_TENANT = "NULLIF(current_setting('attune.tenant', true), '')::uuid"


def protect(table: str, *, column: str = "tenant_id") -> migrations.RunSQL:
    """Return an operation that lets the application's role see only the current tenant's rows of `table`.

    The system role sees all rows. Nobody else sees any: there is no policy for them.
    """
    return migrations.RunSQL(
        sql=f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        CREATE POLICY tenant_rows ON {table} TO {APP_ROLE}
            USING ({column} = {_CURRENT_TENANT}) WITH CHECK ({column} = {_CURRENT_TENANT});
        CREATE POLICY all_rows ON {table} TO {SYSTEM_ROLE} USING (true) WITH CHECK (true);
        """,
        reverse_sql=f"""
        DROP POLICY tenant_rows ON {table};
        DROP POLICY all_rows ON {table};
        ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;
        """,
    )


def append_only(table: str) -> migrations.RunSQL:
    """Return an operation after which neither application role can change or delete rows of `table`."""
    return migrations.RunSQL(
        sql=f"REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {APP_ROLE}, {SYSTEM_ROLE}",
        reverse_sql=f"GRANT UPDATE, DELETE ON {table} TO {APP_ROLE}, {SYSTEM_ROLE}",
    )
