# A server under load, then a fixed dialogue whose answers are compared, then a clean shutdown.
$Q redis-server --port 0 --unixsocket "$PWD/r.sock" --save '' --dir "$PWD" --io-threads 2 \
    --logfile redis.log &
server=$!
await 300 redis-cli -s r.sock ping || { kill -9 $server; exit 1; }
redis-benchmark -s r.sock -q -n 3000 -c 20 -t set,get,incr,lpush,lrange_100,mset >bench.txt 2>&1
echo "benchmark $?"
redis-cli -s r.sock flushall
redis-cli -s r.sock <<'X'
SET greeting hello
APPEND greeting " world"
GET greeting
INCRBY number 41
INCR number
RPUSH list a b c d e
LRANGE list 0 -1
HSET hash one 1 two 2
HGETALL hash
ZADD sorted 3 c 1 a 2 b
ZRANGE sorted 0 -1 WITHSCORES
EVAL "local t = 0 for i = 1, 1000 do t = t + i end return t" 0
SETRANGE greeting 6 Quern
GET greeting
DEBUG OBJECT nothing
OBJECT ENCODING list
SAVE
DBSIZE
X
redis-cli -s r.sock shutdown nosave
wait $server
echo "server ended with $?"
grep -c 'ready to exit' redis.log
