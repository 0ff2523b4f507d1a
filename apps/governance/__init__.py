"""What a tenant may ask of its data: to see who did what, to take it along, to have it gone.

Audit rows are written by `kernel.audit` in the transaction of each act. `export` makes an archive of what a
tenant has, `erasure` deletes a session, a person's conversations or all of them, and says which versions had
learned from them.
"""
