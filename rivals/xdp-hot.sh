#!/bin/bash
# CPU time per cached answer, and latency, over virtual Ethernet, by turns: the XDP program's own answers, Sixfold through sockets, Unbound,
# and a program that only turns the frame round (XDP_TX), which shows what sender and virtual pair cost.
#
#   cargo build --release -p sixfold -p sixfold-bench --features sixfold/xdp
#   rivals/xdp-hot.sh target/release/sixfold target/release/sixfold-bench [ROUNDS [SECONDS]]
#
# Needs root, clang and dnsperf. UNBOUND_ROOT names a folder with another release's Unbound, as mmdebstrap makes it. The time is that of the
# processes, dnsperf and server together: on one virtual pair, what the kernel does for a frame runs within them (a kernel without
# CONFIG_IRQ_TIME_ACCOUNTING). The server has core 0 and dnsperf core 1. 1,000 names; 16 and 400 queries are outstanding. The latency is that of
# sixfold-bench, each query sent alone: with 16 outstanding, and at 20,000 queries/s.
set -eu
sixfold=$(realpath "$1") bench=$(realpath "$2") rounds=${3:-5} seconds=${4:-3}
. "$(dirname "$(realpath "$0")")/upstream-setup.sh"
tester=sixfold-hot-t$$ device=sixfold-hot-d$$
finish() { stop_all; for name in $tester $device; do ip netns del $name 2>/dev/null || true; done; }
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
  [ "$1" != hot ] || sed -i 's/^server = {/& datapath = "xdp", interfaces = ["lan"],/' sixfold.toml
  rm -f log
  ip netns exec $device taskset -c 0 "$sixfold" serve --config sixfold.toml 2>log >&2 &
  server=$!; await_ready
}

microseconds() { cat /proc/"$server"/task/*/schedstat | awk '{ all += $1 } END { printf "%.0f", all / 1000 }'; }

ask() { # outstanding, times through all names or seconds
  ip netns exec $tester bash -c "TIMEFORMAT='cpu %U %S'; time taskset -c 1 dnsperf -s 192.0.2.1 -d names -c 16 -q $1 $2" >dnsperf.log 2>&1
}

latency() { # option of the load: appends p50 and p99 in us, and the queries without a right answer
  rm -f load.json
  # It fails if a query has no right answer, but writes its figures.
  ip netns exec $tester "$bench" load --server 192.0.2.1:53 "$1" --group 1 --spin --pin 1 --duration "${seconds}s" --queries names \
    --quiet --json load.json >load.log 2>&1 || true
  python3 -c "
import json
load = json.load(open('load.json'))
times = load['latency_us']['actual']
print('$device_name', '$1'.removeprefix('--'), times['p50'], times['p99'], load['sent'] - load['valid'])" >>delays
}

for round in $(seq "$rounds"); do
  for device_name in turn hot sockets unbound; do
    serve $device_name
    ask 16 "-n 2"; sleep 1.2; ask 16 "-n 10"
    for outstanding in 16 400; do
      before=$(microseconds)
      ask $outstanding "-l $seconds"
      awk -v name=$device_name -v outstanding=$outstanding -v server=$(($(microseconds) - before)) '
        /Queries completed/ { answers = $3 } /Queries lost/ { lost = $3 } /^cpu/ { tester = ($2 + $3) * 1e6 }
        END { printf "%s %d %.2f %.2f %d\n", name, outstanding, (server + tester) / answers, server / answers, lost }' dnsperf.log >>all
    done
    # The turned frame is no answer that the tester accepts.
    [ $device_name = turn ] || { latency --outstanding=16; latency --rate=20000; }
    kill $server; wait $server 2>/dev/null || true
    ip -n $device link set lan xdpgeneric off 2>/dev/null || true
  done
done
rm -f "${UNBOUND_ROOT:-}/tmp/sixfold-hot.conf"
echo "device, outstanding: us per answer of tester and server, of the server alone (median [range] and mean of $rounds rounds); lost"
sort -k1,1 -k2,2n -k3,3n all | awk -v rounds="$rounds" '
  { key = $1 ", " $2; if (!(key in count)) keys[++number] = key; sum[key, ++count[key]] = $3; own[key] += $4; lost[key] += $5 }
  END { for (i = 1; i <= number; i++) { key = keys[i]; m = int((count[key] + 1) / 2)
    printf "%s: %.2f [%.2f-%.2f], %.2f; %d\n", key, sum[key, m], sum[key, 1], sum[key, count[key]], own[key] / count[key], lost[key] } }'
echo "device, load: us of latency, p50 and p99 (medians of $rounds rounds [range]); queries without a right answer"
for load in outstanding=16 rate=20000; do
  for device_name in hot sockets unbound; do
    for column in 3 4; do
      awk -v name=$device_name -v load=$load -v column=$column '$1 == name && $2 == load { print $column }' delays | sort -n |
        awk '{ all[NR] = $1 } END { printf "%.0f [%.0f-%.0f] ", all[int((NR + 1) / 2)], all[1], all[NR] }'
    done | sed "s/^/$device_name, $load: /"
    awk -v name=$device_name -v load=$load '$1 == name && $2 == load { failed += $5 } END { print "; " failed + 0 }' delays
  done
done
