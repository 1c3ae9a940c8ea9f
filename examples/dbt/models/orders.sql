{{ config(materialized='table', partition_by=['day']) }}
select id, id % 3 + 1 as customer, cast(id * 10 as decimal(10, 2)) as amount, date_add(date'2026-01-01', cast(id % 4 as int)) as day
from range({{ var('orders', 8) }})
