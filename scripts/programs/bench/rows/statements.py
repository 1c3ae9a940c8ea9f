"""The statements that are run on lineitem, in this order, and how the answers of the formats are compared."""

from __future__ import annotations

Q1 = """
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
       avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM {table} WHERE l_shipdate <= DATE'1998-12-01' - INTERVAL 90 DAY
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
"""

Q6 = """
SELECT sum(l_extendedprice * l_discount) AS revenue FROM {table}
WHERE l_shipdate >= DATE'1994-01-01' AND l_shipdate < DATE'1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
"""

POINT = "SELECT * FROM {table} WHERE l_orderkey = 2000000 ORDER BY l_linenumber"

DELETE = "DELETE FROM {table} WHERE l_orderkey % 100 = 7"
"""Orders' keys are sparse: about one row in a hundred."""

UPDATE = "UPDATE {table} SET l_discount = 0.00, l_comment = 'updated' WHERE l_orderkey % 100 = 33"

SOURCE = """
SELECT CASE WHEN number % 2 = 0 THEN l_orderkey ELSE l_orderkey + 1000000000 END AS l_orderkey, l_partkey, l_suppkey,
       l_linenumber, l_quantity + 1 AS l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus,
       l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, 'merged' AS l_comment
FROM (SELECT *, row_number() OVER (ORDER BY xxhash64(l_orderkey, l_linenumber), l_orderkey, l_linenumber) AS number
      FROM parquet.`{data}`)
WHERE number <= 10000
"""
"""Ten thousand rows from all over the table, every other one of an order that is not in it."""

MERGE = """
MERGE INTO {table} AS t USING source AS s ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
"""

CTAS = "CREATE TABLE {table} USING {provider} TBLPROPERTIES ({properties}) AS SELECT * FROM parquet.`{data}`"

READS = {"Q1": Q1, "Q6": Q6, "point": POINT}

STEPS = {
    "CTAS": CTAS,
    **READS,
    "DELETE 1 %": DELETE,
    **{f"{name} after DELETE": text for name, text in READS.items()},
    "UPDATE 1 %": UPDATE,
    **{f"{name} after UPDATE": text for name, text in READS.items()},
    "MERGE 10,000": MERGE,
    **{f"{name} after MERGE": text for name, text in READS.items()},
}
"""By the name that the result shows."""

CHECK = """
SELECT count(*), sum(l_orderkey), sum(l_quantity), sum(l_discount), count_if(l_comment = 'updated'),
       count_if(l_comment = 'merged'), sum(hash(l_orderkey, l_linenumber, l_comment, l_quantity)) FROM {table}
"""
"""The same of every format after every step that changes rows."""
