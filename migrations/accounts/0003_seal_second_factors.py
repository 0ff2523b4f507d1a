"""Seal the TOTP secrets and recovery seeds that were stored in the clear."""

import json
from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from kernel.sealing import seal

# as `apps.accounts.mfa` reads them
PURPOSE, SEALED = "mfa", "sealed:"


def seal_secrets(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Seal every secret that is not; a new database has no such table yet, and none to seal."""
    del apps
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('mfa_authenticator')")
        if cursor.fetchone()[0] is None:
            return
        cursor.execute("SELECT id, data FROM mfa_authenticator WHERE type IN ('totp', 'recovery_codes')")
        for pk, data in cursor.fetchall():
            held = json.loads(data) if isinstance(data, str) else data
            sealed = {
                name: _sealed(value) if name in {"secret", "seed"} else value for name, value in held.items()
            }
            if "migrated_codes" in held:
                sealed["migrated_codes"] = [_sealed(code) for code in held["migrated_codes"]]
            cursor.execute("UPDATE mfa_authenticator SET data = %s WHERE id = %s", [json.dumps(sealed), pk])


def _sealed(text: str) -> str:
    return text if text.startswith(SEALED) else SEALED + seal(text.encode(), purpose=PURPOSE)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_invitation")]
    operations = [migrations.RunPython(seal_secrets, migrations.RunPython.noop)]
