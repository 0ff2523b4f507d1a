"""Saved views: filters of the sessions' list under a name.

filters     the form that the page, a saved view and REST read filters with
services    saving, changing and deleting them
selectors   whose views somebody sees
pages       what the sessions' page posts
"""
