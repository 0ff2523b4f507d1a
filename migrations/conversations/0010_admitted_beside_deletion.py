"""A request that meets a deletion: its session or its person may be gone by the time it is admitted."""

from importlib import import_module

from django.db import migrations

_BEFORE = import_module("migrations.conversations.0008_presumed_lost").ADMIT

_SESSION = (
    "UPDATE conversations_session SET last_turn_at = clock_timestamp(), idle_at = NULL WHERE id = in_session;"
)
_PERSON = """WHERE e.tenant_id = tenant AND e.external_id = asked->>'end_user';"""
_ALREADY = "EXCEPTION WHEN unique_violation THEN"

if not all(part in _BEFORE for part in (_SESSION, _PERSON, _ALREADY)):
    raise RuntimeError("attune_admit reads otherwise by now")

# what was looked up is locked until the commit, or found to be gone: then the gateway looks again
ADMIT = (
    _BEFORE.replace(_SESSION, f"{_SESSION}\n            IF NOT FOUND THEN RAISE no_data_found; END IF;")
    .replace(_PERSON, _PERSON.replace(";", " FOR KEY SHARE;"))
    .replace(_ALREADY, "EXCEPTION WHEN unique_violation OR no_data_found THEN")
)


class Migration(migrations.Migration):
    dependencies = [("conversations", "0009_key_policies")]

    operations = [migrations.RunSQL(sql=ADMIT, reverse_sql=_BEFORE)]
