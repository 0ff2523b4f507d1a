"""Whoever is no member any more has no keys either: they are revoked with the membership, whatever deletes it."""

from django.db import migrations

KEYS_END = """
    CREATE FUNCTION attune_end_keys() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
    BEGIN
        UPDATE keys_apikey SET revoked_at = clock_timestamp()
        WHERE tenant_id = OLD.tenant_id AND user_id = OLD.user_id AND revoked_at IS NULL;
        RETURN NULL;
    END $$;
    CREATE TRIGGER keys_end_with_membership AFTER DELETE ON accounts_membership
        FOR EACH ROW EXECUTE FUNCTION attune_end_keys();
"""

KEYS_GO_ON = """
    DROP TRIGGER keys_end_with_membership ON accounts_membership;
    DROP FUNCTION attune_end_keys();
"""

# keys of whoever was taken out before: they would work again for who is asked in again
OF_NOBODY = """
    UPDATE keys_apikey k SET revoked_at = clock_timestamp() WHERE revoked_at IS NULL AND NOT EXISTS (
        SELECT FROM accounts_membership m WHERE m.tenant_id = k.tenant_id AND m.user_id = k.user_id);
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_mails"), ("keys", "0009_reading_keys_of_policies")]

    operations = [
        migrations.RunSQL(sql=KEYS_END, reverse_sql=KEYS_GO_ON),
        migrations.RunSQL(sql=OF_NOBODY, reverse_sql=migrations.RunSQL.noop),
    ]
