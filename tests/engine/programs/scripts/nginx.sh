# Two workers behind a master serve two files to wrk and curl; then a graceful stop.
port=$(free_port)
mkdir -p www logs
text 300 >www/a.txt
text 3 >www/b.txt
cat >nginx.conf <<X
$([ "$(id -u)" = 0 ] && echo "user root;")
worker_processes 2;
daemon off;
pid nginx.pid;
error_log logs/error.log;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {
        listen 127.0.0.1:$port;
        root www;
        gzip on; gzip_types text/plain; gzip_min_length 1;
        location /say { return 200 "said \$arg_word\n"; }
    }
}
X
$Q nginx -p "$PWD/" -c nginx.conf -e logs/error.log &
server=$!
await 300 curl -s -o /dev/null "http://127.0.0.1:$port/b.txt" || { kill -9 $server; exit 1; }
wrk -t 1 -c 8 -d 1s --timeout 300s "http://127.0.0.1:$port/a.txt" >wrk.txt 2>&1
echo "wrk $?"
grep -E 'Non-2xx|Socket errors' wrk.txt
grep -q 'requests in' wrk.txt && echo "requests served"
curl -s "http://127.0.0.1:$port/a.txt" | cmp - www/a.txt && echo "same content"
curl -s --compressed "http://127.0.0.1:$port/a.txt" | cmp - www/a.txt && echo "same content, compressed"
curl -s -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$port/missing"
curl -s "http://127.0.0.1:$port/say?word=hello"
kill -QUIT $server
wait $server
echo "server ended with $?"
