create table t(id integer primary key, a int, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, (i * 7919) % 1009, 'name ' || (i % 313) from n;
create index ta on t(a);
select a, count(*), sum(id) from t where a < 5 group by a order by a;
select b, max(a) from t group by b order by 2 desc, 1 limit 5;
select count(*) from t x join t y on x.a = y.a where x.id < 500;
select hex(zeroblob(4)), printf('%.5f', avg(a)), total(id) from t;
update t set b = upper(b) where a % 3 = 0;
delete from t where a > 500;
select count(*), group_concat(b, ';') from (select b from t order by id limit 4);
select name, round(sum(n), 3) from (select b as name, a * 1.5 as n from t) group by name limit 3;
pragma integrity_check;
select no_such_column from t;
