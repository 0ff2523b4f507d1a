"""The database roles. None of them is a superuser; only the owner owns tables."""

OWNER_ROLE = "attune_owner"  # runs migrations, nothing else
APP_ROLE = "attune_app"  # every process; sees the current tenant's rows
SYSTEM_ROLE = "attune_system"  # entered by `kernel.tenancy.system_scope`; sees all tenants' rows
