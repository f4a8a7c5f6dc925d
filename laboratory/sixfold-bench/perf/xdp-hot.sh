#!/bin/bash
# Cost of a cached answer, and latency, over virtual Ethernet, by turns: the XDP program's own answers (hot), Sixfold through sockets, Sixfold
# with frames but without hot answers (frames), Unbound, and a program that only turns the frame round (turn, XDP_TX), which shows what
# sender and virtual pair cost.
#
#   cargo build --profile dist -p sixfold -p sixfold-bench --features sixfold/xdp
#   laboratory/sixfold-bench/perf/xdp-hot.sh target/dist/sixfold target/dist/sixfold-bench [ROUNDS [SECONDS [PARTS]]]
#
# Needs root, clang, dnsperf, and perf (linux-perf) and bpftool for the parts that use them. UNBOUND_ROOT names a folder with another release's Unbound, as mmdebstrap makes it. DEVICES names the
# devices (default: turn hot frames sockets unbound). The server has core 0, and the tester core 1. 1,000 names. The parts (default: all):
#
#   cpu      time of the processes, dnsperf and server together, with 16 and 400 queries outstanding. On one virtual pair, what the kernel
#            does for a frame runs within them (a kernel without CONFIG_IRQ_TIME_ACCOUNTING).
#   share    time of the device's end of the pair for a frame, with 400 outstanding: the share of core 1 that perf finds below
#            do_xdp_generic (the program, room for its frame, and sending the frame back), times the time for an answer. Turn and hot only.
#   program  time of a run of the program, with 400 outstanding, as the kernel counts it (kernel.bpf_stats_enabled); its two clock readings
#            are in it. Not for sockets and Unbound.
#   latency  from the sending to the answer, of sixfold-bench, which does not sleep: 5,000, 20,000 and 50,000 queries a second, each sent alone,
#            and 16 outstanding. "sender": the kernel's part runs on the sender's core, as it does between two namespaces; "apart": each
#            side has its core (rps_cpus).
set -eu
sixfold=$(realpath "$1") bench=$(realpath "$2") rounds=${3:-5} seconds=${4:-3} parts=${5:-cpu share program latency}
devices=${DEVICES:-turn hot frames sockets unbound}
. "$(dirname "$(realpath "$0")")/upstream-setup.sh"
stats=$(sysctl -n kernel.bpf_stats_enabled)
tester=sixfold-hot-t$$ device=sixfold-hot-d$$
finish() { stop_all; sysctl -q kernel.bpf_stats_enabled="$stats"; for name in $tester $device; do ip netns del $name 2>/dev/null || true; done; }
trap finish EXIT
"$sixfold" --version | grep -q '^features:.* xdp' || { echo "$sixfold is built without the feature xdp" >&2; exit 1; }

for name in $tester $device; do ip netns add $name; ip -n $name link set lo up; done
ip -n $device link add lan type veth peer name lan netns $tester
ip -n $device addr add 192.0.2.1/24 dev lan; ip -n $device link set lan up
ip -n $tester addr add 192.0.2.10/24 dev lan; ip -n $tester link set lan up

cat >turn.c <<'END'
typedef unsigned char u8;
struct context { unsigned data, data_end; };
static void swap(u8 *one, u8 *other, int octets)
{
	for (int i = 0; i < octets; i++) { u8 octet = one[i]; one[i] = other[i]; other[i] = octet; }
}
/* UDP over IPv4 to port 53: the same message with QR, without a checksum. */
__attribute__((section("xdp"), used)) int turn(struct context *context)
{
	u8 *frame = (u8 *)(unsigned long)context->data;
	if (frame + 54 > (u8 *)(unsigned long)context->data_end)
		return 2;
	if (frame[12] != 8 || frame[13] != 0 || frame[23] != 17 || frame[36] != 0 || frame[37] != 53)
		return 2;
	swap(frame, frame + 6, 6); swap(frame + 26, frame + 30, 4); swap(frame + 34, frame + 36, 2);
	frame[40] = frame[41] = 0;
	frame[44] |= 0x80;
	return 3;
}
char _license[] __attribute__((section("license"), used)) = "Dual MIT/GPL";
END
clang -target bpf -O2 -g -c turn.c -o turn.o

unbound_conf " interface: 127.0.0.1@5397" >upstream.conf
ip netns exec $device unbound -d -c upstream.conf >upstream.log 2>&1 &
awk 'BEGIN { for (i = 0; i < 1000; i++) print "n" i ".perf.test AAAA" }' >names

serve() { # device: starts it, and sets `server`
  case $1 in
    turn) ip -n $device link set lan xdpgeneric obj turn.o sec xdp; sleep 100000 & server=$!; return ;;
    unbound)
      cat >"${UNBOUND_ROOT:-}/tmp/sixfold-hot.conf" <<END
server:
 interface: 192.0.2.1@53
 access-control: 192.0.2.0/24 allow
 num-threads: 1
 username: ""
 chroot: ""
 directory: "/"
 pidfile: ""
 use-syslog: no
 do-not-query-localhost: no
 module-config: "dns64 iterator"
 dns64-prefix: 2001:db8:64::/96
 so-rcvbuf: 4m
forward-zone:
 name: "."
 forward-addr: 127.0.0.1@5397
remote-control:
 control-enable: no
END
      ip netns exec $device taskset -c 0 chroot "${UNBOUND_ROOT:-/}" /usr/sbin/unbound -d -c /tmp/sixfold-hot.conf >log 2>&1 &
      server=$!; sleep 1; return ;;
  esac
  sixfold_toml 192.0.2.1:53 127.0.0.1:5397 udp >sixfold.toml
  # Without trusted proxies, answers would become hot. The sockets have the same setting.
  [ "$1" = hot ] || sed -i 's/^server = {/& proxy-from = ["198.51.100.77\/32"],/' sixfold.toml
  [ "$1" = sockets ] || sed -i 's/^server = {/& datapath = "xdp", interfaces = ["lan"],/' sixfold.toml
  rm -f log
  ip netns exec $device taskset -c 0 "$sixfold" serve --config sixfold.toml 2>log >&2 &
  server=$!; await_ready
}

microseconds() { cat /proc/"$server"/task/*/schedstat | awk '{ all += $1 } END { printf "%.0f", all / 1000 }'; }

ask() { # outstanding, times through all names or seconds
  ip netns exec $tester bash -c "TIMEFORMAT='cpu %U %S'; time taskset -c 1 dnsperf -s 192.0.2.1 -d names -c 16 -q $1 $2" >dnsperf.log 2>&1
}

place() { # "apart": each side's frames go to its core; "sender": all work is done where it begins
  local cores=(0 0)
  [ "$1" = sender ] || cores=(1 2)
  # In a shell of each namespace, because /sys shows the devices of the one in which it was mounted.
  ip netns exec $device sh -c "echo ${cores[0]} >/sys/class/net/lan/queues/rx-0/rps_cpus"
  ip netns exec $tester sh -c "echo ${cores[1]} >/sys/class/net/lan/queues/rx-0/rps_cpus"
}

cpu() { # device
  local outstanding before
  for outstanding in 16 400; do
    before=$(microseconds)
    ask $outstanding "-l $seconds"
    awk -v name="$1" -v outstanding=$outstanding -v server=$(($(microseconds) - before)) '
      /Queries completed/ { answers = $3 } /Queries lost/ { lost = $3 } /^cpu/ { tester = ($2 + $3) * 1e6 }
      END { printf "%s %d %.2f %.2f %d\n", name, outstanding, (server + tester) / answers, server / answers, lost }' dnsperf.log >>all
  done
}

share() { # device
  case $1 in turn | hot) ;; *) return 0 ;; esac
  ask 400 "-l $seconds" &
  local asking=$!
  sleep 0.3
  perf record --quiet -C 1 -e cpu-clock -F 5000 -g -o perf.data -- sleep "$((seconds - 1)).5" >/dev/null 2>&1
  wait $asking
  perf report -i perf.data --children -g none --sort symbol --stdio 2>/dev/null |
    awk -v name="$1" -v rate="$(awk '/Queries per second/ { print $4 }' dnsperf.log)" '
      /do_xdp_generic/ { printf "%s %.3f\n", name, $1 / 100 * 1e6 / rate; exit }' >>shares
}

program() { # device
  case $1 in turn | hot | frames) ;; *) return 0 ;; esac
  sysctl -q kernel.bpf_stats_enabled=1
  local number
  number=$(ip netns exec $device bpftool -j net show dev lan | python3 -c "
import json, sys
print(json.load(sys.stdin)[0]['xdp'][0]['id'])")
  ask 400 "-l $seconds"
  bpftool -j prog show id "$number" | python3 -c "
import json, sys
program = json.load(sys.stdin)
print('$1', program['run_time_ns'] / program['run_cnt'])" >>programs
  sysctl -q kernel.bpf_stats_enabled="$stats"
}

latency() { # device, place, option of the load: appends p50 and p99 in us, and the queries without a right answer
  rm -f load.json
  # It fails if a query has no right answer, but writes its figures.
  ip netns exec $tester "$bench" load --server 192.0.2.1:53 "--$3" --group 1 --spin --pin 1 --duration "${seconds}s" --queries names \
    --quiet --json load.json >load.log 2>&1 || true
  python3 -c "
import json
load = json.load(open('load.json'))
times = load['latency_us']['actual']
print('$1', '$2', '$3', times['p50'], times['p99'], load['sent'] - load['valid'], load['rate_achieved'])" >>delays
}

loads="rate=5000 rate=20000 rate=50000 outstanding=16"
for round in $(seq "$rounds"); do
  for device_name in $devices; do
    serve $device_name
    ask 16 "-n 2"; sleep 1.2; ask 16 "-n 10"
    for part in $parts; do
      case $part in
        cpu) cpu $device_name ;;
        share) share $device_name ;;
        program) program $device_name ;;
        latency)
          for where in sender apart; do
            place $where
            for load in $loads; do latency $device_name $where $load; done
          done
          place sender ;;
      esac
    done
    kill $server; wait $server 2>/dev/null || true
    ip -n $device link set lan xdpgeneric off 2>/dev/null || true
  done
done
rm -f "${UNBOUND_ROOT:-}/tmp/sixfold-hot.conf"

median() { # reads figures: median [lowest-highest], with this format
  sort -n | awk -v format="${1:-%.2f}" '{ all[NR] = $1 }
    END { printf format " [" format "-" format "]", all[int((NR + 1) / 2)], all[1], all[NR] }'
}
total() { awk '{ all += $1 } END { print all + 0 }'; }
if [[ $parts = *cpu* ]]; then
  echo "device, outstanding: us per answer of tester and server, of the server alone (medians of $rounds rounds [range]); lost"
  for device_name in $devices; do
    for outstanding in 16 400; do
      column() { awk -v name=$device_name -v outstanding=$outstanding -v column="$1" '$1 == name && $2 == outstanding { print $column }' all; }
      echo "$device_name, $outstanding: $(column 3 | median), $(column 4 | median); $(column 5 | total)"
    done
  done
fi
for part in share program; do
  [[ $parts = *$part* ]] || continue
  case $part in share) echo "device: us below do_xdp_generic for a frame" ;; *) echo "device: ns of a run of the program" ;; esac
  for device_name in $devices; do
    column() { awk -v name=$device_name '$1 == name { print $2 }' ${part}s; }
    [ -z "$(column)" ] || echo "$device_name: $(column | median)"
  done
done
if [[ $parts = *latency* ]]; then
  echo "place, load, device: us of latency, p50, p99, queries/s (medians of $rounds rounds [range]); queries without a right answer"
  for where in sender apart; do
    for load in $loads; do
      for device_name in $devices; do
        column() {
          awk -v name=$device_name -v place=$where -v load=$load -v column="$1" '$1 == name && $2 == place && $3 == load { print $column }' delays
        }
        echo "$where, $load, $device_name: $(column 4 | median %.1f), $(column 5 | median %.1f), $(column 7 | median %.0f); $(column 6 | total)"
      done
    done
  done
fi
