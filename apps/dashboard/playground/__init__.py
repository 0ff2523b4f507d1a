"""A chat with a policy from the browser, through the same gateway as everybody's.

`page` shows it, `passes` makes the short-lived keys that it asks with, `relay` carries the gateway's stream.
"""
