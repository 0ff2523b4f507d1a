"""Hosted environments for agents: the second kind of conversation a policy learns from.

For a personal assistant the environment is the user. For an agent it is a program: this room will describe
such environments, lease them, run their episodes against `/v1` as any client would, and hand the outcomes to
judging.
"""
