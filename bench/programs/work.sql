create table t(id integer primary key, a int, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 120000)
insert into t select i, (i * 7919) % 10007, 'name ' || (i % 3131) from n;
create index ta on t(a); create index tb on t(b);
select count(*), sum(a) from t where b like 'name 1%';
select count(*) from t x join t y on x.a = y.a where x.id < 20000;
select b, count(*), avg(a) from t group by b order by 3 desc, 1 limit 5;
update t set a = a + 1 where id % 3 = 0;
select count(distinct a), max(length(b)) from t;
select sum(x) from (select a * 3 % 17 as x from t order by b desc, a limit 30000);
