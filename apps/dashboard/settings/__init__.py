"""The settings of a tenant: it as a whole, each policy, judging, alerts.

All see them, who manages the tenant changes them.
"""
