#!/bin/bash
# CPU time of Sixfold per worst-case resolution (six messages), with its upstream over pipelined TCP and over TLS: pairs of runs, and
# the median of their ratios.
#
#   cargo build --release -p sixfold
#   rivals/upstream-tls-cost.sh target/release/sixfold [PAIRS [SECONDS [RATE]]]
#
# Sixfold has one worker. The upstream is Unbound, whose local data have an A record and no AAAA record for all names; dnsperf asks for
# new names over UDP. `openssl` makes the certificate. NSD 4.6 is no upstream for this: of several queries in one TLS record it answers
# only the first before the next record comes.
set -eu
sixfold=$(realpath "$1") pairs=${2:-5} seconds=${3:-4} rate=${4:-10000}
folder=$(mktemp -d) started=()
finish() { for pid in "${started[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" || true; done; rm -rf "$folder"; }
trap finish EXIT
cd "$folder"

new_key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2'
openssl req -x509 $new_key -subj /CN=authority -keyout ca.key -out ca.pem 2>/dev/null
openssl req -x509 $new_key -subj /CN=server -CA ca.pem -CAkey ca.key -addext subjectAltName=DNS:dns.example \
  -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out cert.pem 2>/dev/null
cat >unbound.conf <<END
server:
 interface: 127.0.0.1@5397
 interface: 127.0.0.1@5396
 tls-port: 5396
 tls-service-key: "$folder/key.pem"
 tls-service-pem: "$folder/cert.pem"
 num-threads: 1
 username: ""
 chroot: ""
 directory: "$folder"
 pidfile: "$folder/unbound.pid"
 use-syslog: no
 module-config: "iterator"
 local-zone: "perf.test." redirect
 local-data: "perf.test. SOA ns.perf.test. h.perf.test. 1 3600 600 604800 60"
 local-data: "perf.test. A 198.51.100.7"
remote-control:
 control-enable: no
END
unbound -d -c unbound.conf >unbound.log 2>&1 & started+=($!)

config() { # tcp or tls
  local forwarder=127.0.0.1:5397
  [ "$1" = tcp ] || forwarder=127.0.0.1:5396#dns.example
  cat <<END
server = { listen = ["127.0.0.1:5398"], workers = 1, user = "root" }
upstream = { forwarders = ["$forwarder"], transport = "$1", tls-ca = "$folder/ca.pem" }
dns64 = { prefixes = ["2001:db8:64::/96"] }
limits = { pending-per-client = 65536 }
metrics = { listen = "" }
control = { socket = "$folder/control.sock" }
END
}

ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; } # of 10 ms: utime and stime

one() { # tcp or tls, number of the run: microseconds per answer
  config "$1" >sixfold.toml
  "$sixfold" serve --config sixfold.toml 2>log & local server=$!
  until grep -q 'sixfold: ready' log; do sleep 0.05; done
  awk -v run="$2" -v count=$((seconds * rate)) 'BEGIN { for (i = 0; i < count; i++) print "n" run "-" i ".perf.test AAAA" }' >names
  local before after answers
  before=$(ticks $server)
  dnsperf -s 127.0.0.1 -p 5398 -d names -n 1 -c 4 -q 5000 -Q "$rate" >dnsperf.log 2>&1
  sleep 0.2
  after=$(ticks $server)
  answers=$(sed -n 's/.*Response codes:.*NOERROR \([0-9]*\) (100.00%)/\1/p' dnsperf.log)
  [ -n "$answers" ] || { grep -A12 Statistics dnsperf.log >&2; answers=0; }
  "$sixfold" ctl --socket control.sock upstreams >&2
  kill $server; wait $server || true
  awk -v ticks=$((after - before)) -v answers="$answers" 'BEGIN { print answers ? ticks * 1e4 / answers : 0 }'
}

: >ratios
for pair in $(seq 1 "$pairs"); do
  tcp=$(one tcp $((2 * pair))) tls=$(one tls $((2 * pair + 1)))
  echo "$tcp $tls" | awk '{ printf "TCP %.2f us, TLS %.2f us, ratio %.3f\n", $1, $2, $1 ? $2 / $1 : 0 }'
  echo "$tcp $tls" | awk '$1 && $2 { print $2 / $1 }' >>ratios
done
sort -n ratios | awk '{ all[NR] = $1 } END { printf "median of the ratios %.3f [%.3f-%.3f]\n", all[int((NR + 1) / 2)], all[1], all[NR] }'
