"""Properties of tables: the known properties, and the reserved space of names.

`known` declares each, with a kind of `kinds`. `checking` decides which properties a table may have, and
`policy` is upkeep's reading of them.
"""
