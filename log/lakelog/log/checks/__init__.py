"""Checking every object of a log, and repairing what can be without cost to any reader.

Rule: a check changes nothing; a repair is tried on an overlay of the store first, and keeps what it removes.
It must not know what events mean: a caller's judge does.
"""
