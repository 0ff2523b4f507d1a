"""What a key was rotated into is a key of its own tenant."""

from django.db import migrations

ONE_TENANT = """
ALTER TABLE keys_apikey ADD CONSTRAINT key_successor_of_the_tenant
    FOREIGN KEY (tenant_id, successor_id) REFERENCES keys_apikey (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
"""
ONE_TENANT_BEFORE = "ALTER TABLE keys_apikey DROP CONSTRAINT key_successor_of_the_tenant;"


class Migration(migrations.Migration):
    dependencies = [
        ("keys", "0010_keys_end_with_membership"),
    ]

    operations = [
        migrations.RunSQL(sql=ONE_TENANT, reverse_sql=ONE_TENANT_BEFORE),
    ]
