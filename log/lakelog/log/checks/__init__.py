"""Checking every object of a log, and making the repairs that cost no reader anything.

Rule: a check changes nothing; a repair is tried on an overlay of the store first, and keeps the objects it
removes. It must not know what events mean: a caller's judge does.
"""
