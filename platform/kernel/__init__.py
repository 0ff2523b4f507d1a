"""What every app stands on: tenancy, errors, ids, outbox, audit rows, redaction."""
