"""The demo: a scripted user with one clear preference talks until the policy has learned it."""
