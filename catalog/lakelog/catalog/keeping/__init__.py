"""How a warehouse is maintained: upkeep, expiry, vacuum, checks, backups, erasure, and files that clones
share.

Rule: only maintenance, deletion and checks load this package. It must not know how their results are shown.
"""
