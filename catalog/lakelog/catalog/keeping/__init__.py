"""What keeps a warehouse: upkeep, expiry, vacuum, checks, backups, erasure, and files that clones have in common.

Rule: loaded when something is to be kept, deleted or checked. It must not know how that is shown.
"""
