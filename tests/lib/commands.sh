# Sourced before every setup and command of the table.

# text N: N lines of words that are always the same.
text() {
    awk -v n="$1" 'BEGIN {
        split("the quick brown fox jumps over a lazy dog while seven silver ships sail slowly " \
              "around northern islands carrying copper amber salt and stories of winter", w, " ")
        x = 42
        for (i = 1; i <= n; i++) {
            line = i
            for (k = 0; k < 9; k++) {
                x = (x * 1103515245 + 12345) % 2147483648
                line = line " " w[int(x / 65536) % 25 + 1]
            }
            print line
        }
    }'
}

# free_port: a TCP port nobody listens on, and none of those that the system gives to whoever connects,
# nor of those that tests/report/ci takes.
free_port() {
    python3 -c '
import random, socket
while True:
    port = random.randrange(26000, 32000)
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
            break
        except OSError:
            pass
print(port)'
}

# await SECONDS COMMAND...: repeats the command until it succeeds.
await() {
    local tries=$(($1 * 20))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        if [ "$tries" -le 0 ]; then
            echo "gave up waiting for: $*"
            return 1
        fi
        sleep 0.05
    done
}

# The status of every failing command of an entry is part of what is compared, not only the last.
[ -z "$IN_COMMAND" ] || trap 'echo "status $?"' ERR
