"""What a tenant may ask of its data: to see who did what, to take it along, to have it gone.

Audit rows are written today by `kernel.audit` in the transaction of each act. This room will hold export (a streamed
archive) and erasure (of a session, an end user or a tenant, with what that means for adapters made from it).
"""
