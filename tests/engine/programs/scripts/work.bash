# Shell features in one script: functions, arrays, traps, subshells, pipes, jobs, arithmetic.
declare -A count
while read -r _ first rest; do
    ((count[$first]++))
done <text.txt
for key in "${!count[@]}"; do echo "$key ${count[$key]}"; done | sort
fact() { if (($1 < 2)); then echo 1; else echo $(($1 * $(fact $(($1 - 1))))); fi; }
echo "fact $(fact 15)"
trap 'echo "got USR1"' USR1
kill -USR1 $$
(sleep 0.05; exit 7) &
wait $!
echo "job $?"
set -o pipefail
seq 1000 | grep 7 | wc -l
false | true
echo "pipefail $?"
mapfile -t lines < <(head -3 text.txt)
echo "${#lines[@]} ${lines[1]^^}"
printf '%05d %x %s\n' 42 255 "${PWD##*/}" | sed 's/ [^ ]*$//'
x=0; for ((i = 0; i < 20000; i++)); do ((x = (x * 31 + i) % 65537)); done; echo "$x"
trap 'echo leaving' EXIT
exit 5
