{% snapshot customers_history %}
{{ config(target_schema='shop', file_format='delta', unique_key='id', strategy='check', check_cols=['city']) }}
select * from {{ ref('customers') }}
{% endsnapshot %}
