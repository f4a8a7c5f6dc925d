#!/bin/bash
# Answers and delay of Sixfold with an upstream behind a link with delay and loss, over UDP and TCP: the grounds for the default of
# `upstream.transport`.
#
#   cargo build --profile dist -p sixfold -p sixfold-bench
#   laboratory/sixfold-bench/perf/upstream-loss.sh target/dist/sixfold target/dist/sixfold-bench [SECONDS [RATE]]
#
# Needs root. Sixfold and dnsperf are in one network namespace, Unbound with local data in another; `sixfold-bench link` joins them.
# Every name is new, and needs two upstream queries. LINKS: pairs of one-way delay and share of lost packets.
set -eu
sixfold=$(realpath "$1") bench=$(realpath "$2") seconds=${3:-8} rate=${4:-1000}
links=${LINKS:-"0ms,0 5ms,0 5ms,0.01 5ms,0.05 25ms,0.01 25ms,0.05"}
left=sixfold-loss-l$$ right=sixfold-loss-r$$
. "$(dirname "$(realpath "$0")")/upstream-setup.sh"
finish() { stop_all; ip netns del $left; ip netns del $right; }
ip netns add $left; ip netns add $right
trap finish EXIT
ip -n $left link set lo up; ip -n $right link set lo up

unbound_conf " interface: 198.18.0.2
 access-control: 0.0.0.0/0 allow
 ip-freebind: yes" >unbound.conf
ip netns exec $right unbound -d -c unbound.conf >unbound.log 2>&1 &

one() { # transport, number of the run
  sixfold_toml 127.0.0.1:53 198.18.0.2 "$1" >sixfold.toml
  ip netns exec $left "$sixfold" serve --config sixfold.toml 2>log & local server=$!
  echo $server >server.pid
  await_ready
  ask "$2-first" 12 100 # Round trips become known.
  ask "$2" "$seconds" "$rate"
  kill $server; wait $server || true; rm server.pid
  awk -v name="$1" '
    /Queries sent:/ { sent = $3 }
    /Response codes:/ { for (i = 3; i < NF; i += 2) if ($i == "NOERROR") good = $(i + 1) }
    /Average Latency/ { sub(/,/, "", $4); average = $4; longest = $NF; sub(/\)/, "", longest); minimum = $6; sub(/,/, "", minimum) }
    /Latency StdDev/ { deviation = $4 }
    END { printf "%-5s NOERROR %.3f %%, average %.1f ms, standard deviation %.1f ms, longest %.0f ms\n", name, 100 * good / sent, 1000 * average, 1000 * deviation, 1000 * longest }
  ' dnsperf.log
}

ask() { # prefix of the names, seconds, rate
  new_names "$1" $(($2 * $3 + 10)) >names
  ip netns exec $left dnsperf -s 127.0.0.1 -p 53 -d names -n 1 -l "$2" -t 5 -c 4 -q 5000 -Q "$3" >dnsperf.log 2>&1
}

run=0
for link in $links; do
  ip netns exec $left "$bench" link --left $left --right $right --delay "${link%,*}" --loss "${link#*,}" >link.log 2>&1 & pid=$!
  sleep 1
  echo "one-way delay ${link%,*}, loss ${link#*,}"
  for transport in udp tcp; do run=$((run + 1)); one $transport "$run"; done
  kill $pid; wait $pid || true
done
