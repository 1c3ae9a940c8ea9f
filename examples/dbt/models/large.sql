{{ config(materialized='view') }}
select * from {{ ref('totals') }} where amount > 50
