#!/bin/bash
# Cost of encrypted transports: Sixfold beside Unbound, BIND, Knot Resolver and dnsdist, in turn, on one machine.
#
#   cargo build --profile dist -p sixfold -p sixfold-bench
#   laboratory/sixfold-bench/perf/encrypted.sh target/dist/sixfold target/dist/sixfold-bench [ROUNDS [SECONDS]]
#   PARTS="cost handshakes memory swaps" SERVERS="sixfold dnsdist" TRANSPORTS="tcp dot doh" laboratory/sixfold-bench/perf/encrypted.sh ...
#
# The server has core 0; the tester and the upstream have core 1. Packages: dnsperf, unbound, bind9, knot-resolver, dnsdist, openssl, python3.
# cost        CPU time of the server (utime and stime) per answered question over 100 kept connections. The tester is dnsperf with a
#             thread and one outstanding query per connection: it loses responses that share a TLS record, which happens with more.
#             "cached": a thousand names again and again. "new": each name once.
# pipelined   CPU time of the server per answered question, cached, over 100 kept connections with ten outstanding queries each. The tester is
#             that of Sixfold, because dnsperf loses responses that share a TLS record.
# handshakes  CPU time of the server per TLS connection with one cached query, full and resumed, and handshakes per second of CPU time.
# memory      Growth of resident memory by 10,000 idle connections over TLS, and the 99th percentile of the delay over UDP before and
#             meanwhile, each the median of ROUNDS loads of 5 s.
# attacks     Queries over UDP and new clients over TLS while an attacker is busy (encrypted-attacks.sh, attack-tls.py, probe-tls.py).
# swaps       Queries without an answer at 2,000/s over four kept TLS connections, while the certificate is exchanged 20 times.
set -u
sixfold=$(realpath "$1") bench=$(realpath "$2") rounds=${3:-3} seconds=${4:-4}
parts=${PARTS:-cost handshakes memory swaps} servers=${SERVERS:-sixfold unbound bind kresd dnsdist}
transports=${TRANSPORTS:-tcp dot doh} prefix=2001:db8:64::/96
udp_port=25353 dot_port=25853 doh_port=25443 control_port=25953 upstream_port=25399
connections=100 idle_connections=${IDLE:-10000} swaps=20 rate=2000
folder=$(mktemp -d) started=() server_pid=
PATH=$PATH:/usr/sbin:/sbin
here=$(dirname "$(realpath "$0")")
. "$here/encrypted-servers.sh"
. "$here/encrypted-attacks.sh"
ulimit -n "$(ulimit -Hn)"
taskset -p -c 1 $$ >/dev/null

finish() {
  # Their ports are free when they have ended, for the next run.
  for pid in $server_pid "${started[@]}"; do kill "$pid" 2>/dev/null && wait "$pid"; done
  rm -rf "$folder"
}
trap finish EXIT
fail() { echo "encrypted.sh: $1" >&2; exit 1; }
run() { exec setpriv --pdeathsig KILL taskset -c 0 "$@"; }
ticks() { sed 's/.*) //' "/proc/$server_pid/stat" | awk '{ print $12 + $13 }'; } # of 10 ms: utime and stime
resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$server_pid/status"; }
median() { sort -n | awk '{ all[NR] = $1 } END { if (NR) printf "%.1f [%.1f-%.1f]", all[int((NR + 1) / 2)], all[1], all[NR]; else printf "-" }'; }

certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=dns.example \
    -addext subjectAltName=DNS:dns.example,IP:127.0.0.1 -keyout "$folder/key.new" -out "$folder/cert.new" 2>/dev/null
  mv "$folder/key.new" "$folder/key.pem"
  mv "$folder/cert.new" "$folder/cert.pem"
}
fingerprint() { openssl x509 -noout -fingerprint; }
served_fingerprint() { openssl s_client -connect "127.0.0.1:$dot_port" </dev/null 2>/dev/null | fingerprint 2>/dev/null; }

names() { # first, count: names of the upstream, with the type AAAA
  awk -v first="$1" -v count="$2" 'BEGIN { for (n = first; n < first + count; n++)
    printf "%03d-%03d-%03d-%03d.dns64perf.test AAAA\n", 11 + int(n / 15625000), int(n / 62500) % 250, int(n / 250) % 250, n % 250 }'
}

start() { # server
  "start_$1" >"$folder/$1.log" 2>&1 &
  server_pid=$!
  for _ in $(seq 100); do
    if kdig @127.0.0.1 -p $udp_port +timeout=1 +retry=0 000-000-000-009.dns64perf.test AAAA 2>/dev/null | grep -q 'status: NOERROR'; then
      [ -n "$(served_fingerprint)" ] && return 0
    fi
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
  done
  echo "$1 does not answer: $(tail -3 "$folder/$1.log")" >&2
  stop
  return 1
}
stop() { kill "$server_pid" 2>/dev/null; wait "$server_pid" 2>/dev/null; server_pid=; }

ask() { # transport, names, seconds, further options of dnsperf
  local mode=$1 file=$2 length=$3 port=$dot_port options=() threads=4
  shift 3
  [ "$mode" = tcp ] && port=$udp_port
  [ "$mode" = doh ] && port=$doh_port threads=$connections options=(-O "doh-uri=https://localhost:$doh_port/dns-query")
  timeout -s KILL $((length + 30)) stdbuf -oL dnsperf -s 127.0.0.1 -p "$port" -m "$mode" "${options[@]}" -d "$file" -l "$length" \
    -c $connections -T $threads -q $connections -t 5 "$@" 2>/dev/null
}

# Prints the microseconds of CPU time per answered question, and the questions a second. dnsperf prints its rate each second; CPU time
# is read at these lines, so connecting does not count.
cost() { # transport, names
  ask "$1" "$2" $((seconds + 1)) -S 1 | while read -r line; do
    case $line in [0-9]*.*:\ *) echo "$(ticks) ${line/:/}" ;; esac
  done | awk 'NR == 1 { first = $1; then = $2; begin = $2; next }
    { last = $1; answers += $3 * ($2 - then); then = $2 }
    END { if (answers > 0) printf "%.2f %.0f\n", (last - first) * 1e4 / answers, answers / (then - begin) }'
}

# Starts each server in each round, and runs a function, which measures it and knows it as `server`.
in_rounds() { # function
  local round server
  for round in $(seq "$rounds"); do
    for server in $servers; do
      start "$server" || continue
      "$1"
      stop
    done
  done
}

fill_cache() { ask tcp "$folder/cached" 1 >/dev/null; }

# Keeps the figures of a run, microseconds and a rate first, for `report`.
record() { # part, kind, figures
  [ -n "$3" ] && echo "$3" >>"$folder/$1.$2.$server"
  echo "round $round, $server, ${2/./ }: $3" >&2
}

report() { # part, kinds
  local part=$1 kind server file
  shift
  for kind; do
    for server in $servers; do
      file=$folder/$part.$kind.$server
      [ -s "$file" ] && echo "${kind/./ } $server: $(median <"$file") us, $(cut -d' ' -f2 "$file" | median)/s"
    done
  done
}

cost_of_server() {
  local transport
  for transport in $transports; do
    fill_cache
    record cost "$transport.cached" "$(cost "$transport" "$folder/cached")"
    record cost "$transport.new" "$(cost "$transport" "$folder/new.$transport")"
  done
}

measure_cost() {
  names 0 1000 >"$folder/cached"
  local number=0 transport kinds=()
  for transport in $transports; do
    names $((1000000 + 2000000 * number++)) 400000 >"$folder/new.$transport"
    kinds+=("$transport.cached" "$transport.new")
  done
  in_rounds cost_of_server
  echo "CPU us per question over $connections kept connections, median of $rounds rounds [lowest-highest], and questions/s:"
  report cost "${kinds[@]}"
}

# Prints microseconds of CPU time per question and the questions a second, over ten times as many outstanding queries as connections.
pipelined_cost() { # transport
  local port=$dot_port form=(tls --tls-insecure) before after
  [ "$1" = doh ] && port=$doh_port form=(https --tls-insecure)
  [ "$1" = tcp ] && port=$udp_port form=(tcp-reuse)
  before=$(ticks)
  "$bench" load --server "127.0.0.1:$port" --transport "${form[@]}" --connections $connections --outstanding $((10 * connections)) \
    --queries "$folder/cached" --duration "${seconds}s" --timeout 5s --quiet --json "$folder/load.json" >"$folder/load.log" 2>&1
  after=$(ticks)
  python3 -c "
import json
load = json.load(open('$folder/load.json'))
print('%.2f %.0f lost %d' % (($after - $before) * 1e4 / max(load['valid'], 1), load['valid'] / $seconds, load['sent'] - load['valid']))"
}

pipelined_cost_of_server() {
  local transport
  fill_cache
  for transport in $transports; do record pipelined "$transport" "$(pipelined_cost "$transport")"; done
}

measure_pipelined() {
  names 0 1000 >"$folder/cached"
  in_rounds pipelined_cost_of_server
  echo "CPU us per question over $connections kept connections with ten outstanding queries each, and questions/s:"
  report pipelined $transports
}

# Prints microseconds of CPU time per connection with one query, connections per second of it, the queries, and the share of resumed
# handshakes.
connect_and_ask() { # options of the load
  local before after
  before=$(ticks)
  "$bench" load --server "127.0.0.1:$dot_port" --transport tls --connection-per-query --tls-insecure --queries "$folder/cached" \
    --outstanding 8 --duration "${seconds}s" --timeout 5s --ports 64 --quiet --json "$folder/load.json" "$@" >/dev/null 2>&1
  sleep 0.3
  after=$(ticks)
  python3 -c "
import json
load = json.load(open('$folder/load.json'))
tls = load['connections']['tls']
us = max($after - $before, 1) * 1e4 / max(load['valid'], 1)
print('%.2f %.0f %d %.2f' % (us, 1e6 / us, load['valid'], tls['resumed'] / max(tls['full'] + tls['resumed'], 1)))"
}

handshakes_of_server() {
  fill_cache
  record handshakes full "$(connect_and_ask)"
  record handshakes resumed "$(connect_and_ask --resume)"
}

measure_handshakes() {
  names 0 1000 >"$folder/cached"
  in_rounds handshakes_of_server
  echo "CPU us per TLS connection with one cached query, and connections per second of CPU time:"
  report handshakes full resumed
}

udp_p99_ms() { # median of all rounds
  local round
  for round in $(seq "$rounds"); do one_udp_p99_ms; done | sort -n | awk '{ all[NR] = $1 } END { printf "%.3f [%.3f-%.3f]", all[int((NR + 1) / 2)], all[1], all[NR] }'
}

one_udp_p99_ms() {
  "$bench" load --server "127.0.0.1:$udp_port" --rate $rate --queries "$folder/cached" --duration 5s --warm-up 1s --quiet \
    --json "$folder/load.json" >/dev/null 2>&1
  python3 -c "
import json
print('%.3f' % (json.load(open('$folder/load.json'))['latency_us']['actual']['p99'] / 1e3))"
}

measure_memory() {
  names 0 1000 >"$folder/cached"
  echo "Growth of resident memory by $idle_connections idle connections over TLS, and p99 over UDP at $rate queries/s:"
  local server
  for server in $servers; do
    start "$server" || continue
    ask dot "$folder/cached" 2 >/dev/null
    local before after p99_before p99_after opened open count=$idle_connections
    # Unbound reserves a file for each connection on each of its three addresses. Knot Resolver ends idle connections after ten seconds.
    case $server in unbound) count=$((count / 2)) ;; kresd) count=$((count / 5)) ;; esac
    p99_before=$(udp_p99_ms)
    before=$(resident_kib)
    coproc IDLE { exec setpriv --pdeathsig KILL python3 "$here/idle-tls.py" $dot_port "$count"; }
    local idle_pid=$IDLE_PID
    read -r -t 300 opened <&"${IDLE[0]}"
    sleep 2
    after=$(resident_kib)
    p99_after=$(udp_p99_ms)
    kill -USR1 "$idle_pid" # prints the connections that are still open, and ends
    read -r -t 60 open <&"${IDLE[0]}"
    wait "$idle_pid"
    echo "$server: $(awk -v kib=$((after - before)) -v count="$opened" 'BEGIN { printf "%.1f", kib / count }') KiB per connection ($opened opened, $open open after the measurement)," \
      "UDP p99 $p99_before ms before, $p99_after ms meanwhile"
    stop
  done
}

measure_swaps() {
  names 0 1000 >"$folder/cached"
  echo "$swaps exchanges of the certificate at $rate queries/s over four TLS connections:"
  local server
  for server in $servers; do
    certificate
    start "$server" || continue
    ask dot "$folder/cached" 2 >/dev/null
    "$bench" load --server "127.0.0.1:$dot_port" --transport tls --tls-insecure --queries "$folder/cached" --rate $rate \
      --duration 18s --timeout 2s --quiet --json "$folder/load.json" >/dev/null 2>&1 &
    local load_pid=$! accepted=0
    sleep 1
    for _ in $(seq $swaps); do
      certificate
      "reload_$server" >"$folder/reload.log" 2>&1
      sleep 0.3
      [ "$(served_fingerprint)" = "$(fingerprint <"$folder/cert.pem")" ] && accepted=$((accepted + 1))
    done
    wait $load_pid
    python3 -c "
import json
load = json.load(open('$folder/load.json'))
print('$server: %d of %d queries lost, the new certificate served after $accepted of $swaps exchanges' % (load['sent'] - load['valid'], load['sent']))"
    stop
  done
}

for program in dnsperf kdig openssl python3 setpriv taskset stdbuf; do
  command -v $program >/dev/null || fail "$program is missing: apt-get install dnsperf knot-dnsutils openssl python3 util-linux coreutils"
done
certificate
"$bench" authority --listen "127.0.0.1:$upstream_port" >/dev/null 2>&1 & started+=($!)
sleep 0.3
kill -0 "${started[-1]}" 2>/dev/null || fail "the authority cannot listen on port $upstream_port"
for part in $parts; do
  case $part in
    cost | pipelined | handshakes | memory | swaps | attacks) "measure_$part" ;;
    *) fail "PARTS: $part is none of cost, pipelined, handshakes, memory, swaps, attacks" ;;
  esac
done
