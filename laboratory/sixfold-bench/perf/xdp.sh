#!/bin/bash
# Rates of Sixfold by the procedure of RFC 8219 (the quick profile) with queries through sockets and as frames (AF_XDP), over virtual
# Ethernet, by turns: names that are all new, and names that are all cached.
#
#   cargo build --profile dist -p sixfold -p sixfold-bench --features sixfold/xdp
#   laboratory/sixfold-bench/perf/xdp.sh target/dist/sixfold target/dist/sixfold-bench [ROUNDS [FOLDER]]
#
# A round takes 5 minutes. CACHED and DATAPATHS make it shorter: the shares of cached names (default: 0.0, 1.0), and sockets, xdp or both.
# GROUP is the number of queries that leave from one port at a time (default: 1, each query is a frame). A larger group crosses the pair
# in one piece, which the program leaves to the sockets in generic mode.
# Needs root. Tester, server and authority are in network namespaces of their own; the server has core 0, the others share core 1. The
# bundles of all runs go to FOLDER (default: a temporary one, which is removed), as ROUND-DATAPATH.
set -eu
sixfold=$(realpath "$1") bench=$(realpath "$2") rounds=${3:-2}
folder=$(mktemp -d) results=${4:-$folder}
tester=sixfold-xdp-t$$ device=sixfold-xdp-d$$ authority=sixfold-xdp-a$$
# The agents of a run end with it, so nothing runs in the namespaces then.
finish() { for name in $tester $device $authority; do ip netns del $name 2>/dev/null || true; done; rm -rf "$folder"; }
trap finish EXIT
"$sixfold" --version | grep -q '^features:.* xdp' || { echo "$sixfold is built without the feature xdp" >&2; exit 1; }
mkdir -p "$results"

for name in $tester $device $authority; do
  ip netns add $name
  ip netns exec $name sh -c 'echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad'
  ip -n $name link set lo up
done
join() { # device, namespace and address of the one end, of the other end
  ip -n "$2" link add "$1" type veth peer name "$1" netns "$4"
  ip -n "$2" addr add "$3/64" dev "$1" nodad; ip -n "$2" link set "$1" up
  ip -n "$4" addr add "$5/64" dev "$1" nodad; ip -n "$4" link set "$1" up
}
join lan $tester 2001:2:0:1::1 $device 2001:2:0:1::53
join wan $authority 2001:2:0:2::54 $device 2001:2:0:2::53
# The self-test asks the authority without the server, so not through the interface with the program.
join self $tester 2001:2:0:3::1 $authority 2001:2:0:3::54
ip -n $tester route add 2001:2:0:2::/64 via 2001:2:0:3::54
ip -n $authority route add 2001:2:0:1::/64 via 2001:2:0:3::1

cat >"$folder/plan.toml" <<END
profile = "quick"
[grid]
cached = [${CACHED:-0.0, 1.0}]
[search]
curve = []
[tester]
host = ["ip", "netns", "exec", "$tester", "$bench"]
sources = ["2001:2:0:1::1"]
cores = [1]
group = ${GROUP:-1}
[device]
template = "sixfold"
program = "$sixfold"
host = ["ip", "netns", "exec", "$device", "$bench"]
address = "[2001:2:0:1::53]:53"
cores = "0"
[authority]
host = ["ip", "netns", "exec", "$authority", "$bench"]
address = "[2001:2:0:2::54]:53"
cores = [1]
END

one() { # round, datapath, options of the server
  local place=$results/$1-$2 options=() line
  for line in "${@:3}"; do options+=(--device-option "$line"); done
  "$bench" run --plan "$folder/plan.toml" --out "$place" --quiet "${options[@]}" >"$folder/result" || { cat "$folder/result"; return 1; }
  sed "s/^/round $1, $2: /" "$folder/result"
}

for round in $(seq "$rounds"); do
  for datapath in ${DATAPATHS:-sockets xdp}; do
    case $datapath in
      sockets) one "$round" sockets ;;
      xdp) one "$round" xdp 'server.datapath = "xdp"' 'server.interfaces = ["lan"]' ;;
    esac
  done
done
