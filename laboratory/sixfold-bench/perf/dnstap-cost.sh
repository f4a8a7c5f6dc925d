#!/bin/bash
# CPU time of Sixfold per answer, with dnstap off and on: pairs of runs, and the median of their ratios.
#
#   cargo build --profile dist -p sixfold -p sixfold-bench
#   laboratory/sixfold-bench/perf/dnstap-cost.sh target/dist/sixfold target/dist/sixfold-bench [PAIRS [SECONDS [RATE]]]
#
# Sixfold has one worker. The reader is fstrm_capture (package fstrm-bin), which writes to /dev/null; its CPU time does not count.
# "misses" asks for new names only (six messages per answer), "cached" for a thousand names again and again (two messages).
set -eu
sixfold=$(realpath "$1") bench=$(realpath "$2") pairs=${3:-7} seconds=${4:-4} rate=${5:-15000}
folder=$(mktemp -d) started=()
finish() { for pid in "${started[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" || true; done; rm -rf "$folder"; }
trap finish EXIT
for number in $(seq 0 999); do printf '%03d-%03d-%03d-%03d.dns64perf.test AAAA\n' 9 0 $((number / 250)) $((number % 250)); done \
  >"$folder/names"

"$bench" authority --listen 127.0.0.1:5399 >/dev/null 2>&1 & started+=($!)
fstrm_capture -t protobuf:dnstap.Dnstap -u "$folder/tap.sock" -w /dev/null >/dev/null 2>&1 & started+=($!)

config() { # dnstap
  cat <<END
server = { listen = ["127.0.0.1:5398"], workers = 1, user = "root" }
upstream = { forwarders = ["127.0.0.1:5399"] }
dns64 = { prefixes = ["2001:db8:64::/96"] }
limits = { pending-per-client = 65536 }
metrics = { listen = "" }
control = { socket = "$folder/control.sock" }
log = { dnstap = "$1" }
END
}

ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; } # of 10 ms: utime and stime

one() { # load, dnstap, number of the run: microseconds per valid answer
  config "$2" >"$folder/sixfold.toml"
  "$sixfold" serve --config "$folder/sixfold.toml" 2>"$folder/log" & local server=$!
  until grep -q 'sixfold: ready' "$folder/log"; do sleep 0.05; done
  sleep 0.5
  local names=(--prefix 2001:db8:64::/96 --names "$((20 + $3)).0.0.0/8")
  if [ "$1" = cached ]; then
    names=(--queries "$folder/names")
    "$bench" load --server 127.0.0.1:5398 --rate 2000 --duration 2s --quiet "${names[@]}" || true
  fi
  local before after
  before=$(ticks $server)
  "$bench" load --server 127.0.0.1:5398 --rate "$rate" --duration "${seconds}s" --quiet \
    --json "$folder/load.json" "${names[@]}" || true
  sleep 0.2
  after=$(ticks $server)
  [ -z "$2" ] || "$sixfold" ctl --socket "$folder/control.sock" stats | grep '^sixfold_dnstap_frames_total' >&2
  kill $server; wait $server || true
  python3 -c "import json; load = json.load(open('$folder/load.json')); print(($after - $before) * 1e4 / load['valid'])"
}

for load in misses cached; do
  : >"$folder/ratios"
  for pair in $(seq 1 "$pairs"); do
    off=$(one $load "" $((2 * pair))) on=$(one $load "unix:$folder/tap.sock" $((2 * pair + 1)))
    echo "$off $on" | awk -v load=$load '{ printf "%s: off %.2f us, on %.2f us, ratio %.3f\n", load, $1, $2, $2 / $1 }'
    echo "$off $on" | awk '{ print $2 / $1 }' >>"$folder/ratios"
  done
  sort -n "$folder/ratios" | awk -v load=$load \
    '{ all[NR] = $1 } END { printf "%s: median of the ratios %.3f [%.3f-%.3f]\n", load, all[int((NR + 1) / 2)], all[1], all[NR] }'
done
