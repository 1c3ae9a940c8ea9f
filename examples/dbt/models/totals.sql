{{ config(materialized='incremental', incremental_strategy='merge', unique_key='customer') }}
select o.customer, c.name, sum(o.amount) as amount, count(*) as orders
from {{ ref('orders') }} o join {{ ref('customers') }} c on c.id = o.customer
{% if is_incremental() %}
where o.customer >= (select min(customer) from {{ this }})
{% endif %}
group by o.customer, c.name
