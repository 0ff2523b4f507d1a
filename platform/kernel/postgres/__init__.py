"""Django's PostgreSQL backend, with the scope of the running code applied to the session."""
