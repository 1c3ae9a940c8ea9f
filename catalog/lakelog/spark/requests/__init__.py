"""The adapter's requests and their answers: a struct for each, by subject, without their implementation.

The tag of a request is its method. A member without a default is always sent. A member with a default may be
missing, and unknown members are refused. `scripts/wire` generates the Scala side (`catalog/spark/wire/`) and
the list in `catalog/spark/README.md` from these structs. Structs of `lakelog.catalog` stand in them as they
are stored. Only `process` may be imported before the versions are known to fit, because all others import the
catalog.
"""
