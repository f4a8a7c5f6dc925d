#!/bin/bash
# CPU time of Sixfold per worst-case resolution (six messages), with its upstream over one transport or another: rounds in which the
# transports take turns, and the median of their ratios to the first one.
#
#   cargo build --profile dist -p sixfold
#   TRANSPORTS="udp tcp" laboratory/sixfold-bench/perf/upstream-cost.sh target/dist/sixfold [ROUNDS [SECONDS [RATE]]]
#
# TRANSPORTS: of udp, tcp and tls; without it, tcp and tls. RATE: queries per second; 0 as many as the server answers, with 100
# outstanding from 16 ports. Set CPUS to two lists of cores, as in "0 1", to keep the server apart from upstream and tester.
# Sixfold has one worker. The upstream is Unbound, whose local data have an A record and no AAAA record for all names; dnsperf asks for
# new names over UDP. `openssl` makes the certificate. NSD 4.6 is no upstream for this: of several queries in one TLS record it answers
# only the first before the next record comes.
set -eu
sixfold=$(realpath "$1") rounds=${2:-5} seconds=${3:-4} rate=${4:-10000}
transports=${TRANSPORTS:-tcp tls}
read -r server_cpus others_cpus <<<"${CPUS:-0-1023 0-1023}"
. "$(dirname "$(realpath "$0")")/upstream-setup.sh"
trap stop_all EXIT

new_key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2'
openssl req -x509 $new_key -subj /CN=authority -keyout ca.key -out ca.pem 2>/dev/null
openssl req -x509 $new_key -subj /CN=server -CA ca.pem -CAkey ca.key -addext subjectAltName=DNS:dns.example \
  -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out cert.pem 2>/dev/null
unbound_conf " interface: 127.0.0.1@5397
 interface: 127.0.0.1@5396
 tls-port: 5396
 tls-service-key: \"$folder/key.pem\"
 tls-service-pem: \"$folder/cert.pem\"" >unbound.conf
taskset -c "$others_cpus" unbound -d -c unbound.conf >unbound.log 2>&1 &

ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; } # of 10 ms: utime and stime

ask() { # prefix of the names, seconds, rate
  new_names "$1" $(($2 * ($3 ? $3 : 150000))) >names
  local load="-c 4 -q 5000 -Q $3"
  [ "$3" != 0 ] || load="-c 16 -q 100"
  taskset -c "$others_cpus" dnsperf -s 127.0.0.1 -p 5398 -d names -n 1 -l "$2" $load >dnsperf.log 2>&1
}

one() { # transport, number of the run: microseconds per answer
  local forwarder=127.0.0.1:5397
  [ "$1" != tls ] || forwarder=127.0.0.1:5396#dns.example
  sixfold_toml 127.0.0.1:5398 "$forwarder" "$1" "tls-ca = \"$folder/ca.pem\"" >sixfold.toml
  taskset -c "$server_cpus" "$sixfold" serve --config sixfold.toml 2>log & local server=$!
  echo $server >server.pid
  await_ready
  local before after answers
  before=$(ticks $server)
  ask "$2" "$seconds" "$rate"
  sleep 0.2
  after=$(ticks $server)
  answers=$(sed -n 's/.*Response codes:.*NOERROR \([0-9]*\) (100.00%)/\1/p' dnsperf.log)
  [ -n "$answers" ] || { grep -A12 Statistics dnsperf.log >&2; answers=0; }
  "$sixfold" ctl --socket control.sock upstreams >&2
  kill $server; wait $server || true; rm server.pid
  awk -v ticks=$((after - before)) -v answers="$answers" 'BEGIN { print answers ? ticks * 1e4 / answers : 0 }'
}

first=${transports%% *}
for round in $(seq 1 "$rounds"); do
  for transport in $transports; do
    cost=$(one "$transport" "$round$transport")
    echo "$cost" >>"costs.$transport"
    [ "$transport" != "$first" ] || base=$cost
    echo "$transport $cost $base" | awk '{ printf "%s %.2f us, ratio %.3f\n", $1, $2, $3 ? $2 / $3 : 0 }'
    echo "$cost $base" | awk '$1 && $2 { print $1 / $2 }' >>"ratios.$transport"
  done
done
for transport in $transports; do
  sort -n "costs.$transport" | awk -v name="$transport" '{ all[NR] = $1 } END { printf "%s: median %.2f us [%.2f-%.2f], ", name, all[int((NR + 1) / 2)], all[1], all[NR] }'
  sort -n "ratios.$transport" | awk -v name="$first" '{ all[NR] = $1 } END { printf "%.3f [%.3f-%.3f] of %s\n", all[int((NR + 1) / 2)], all[1], all[NR], name }'
done
