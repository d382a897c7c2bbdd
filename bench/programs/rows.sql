create table t(id integer primary key, a int, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200000)
insert into t select i, (i * 7919) % 10007, 'a longer name for the row ' || i || printf('%.60c', 'x') from n;
create index ta on t(a);
select count(*), sum(a), max(length(b)) from t;
