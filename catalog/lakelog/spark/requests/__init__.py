"""What the adapter can ask, and what it is answered: one struct for each, by subject, and nothing of how it is done.

The tag of a request is its method. A member without a default is always sent; one that may be missing says so by its
default, and unknown members are refused. The Scala side (`catalog/spark/wire/`) and the list in
`catalog/spark/README.md` are generated from these structs, by `scripts/wire`. Those of `lakelog.catalog` stand in them
as they are stored. Only `process` may be imported before it is known that the versions fit: all others import the
catalog.
"""
