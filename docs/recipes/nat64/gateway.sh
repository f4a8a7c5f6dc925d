#!/bin/sh
# Starts the translator of the gateway, with the files beside this one. As root; ends with TAYGA. It can be run again.
set -eu
cd "$(dirname "$0")"

for program in ip nft tayga; do
  command -v "$program" > /dev/null || {
    echo "gateway.sh: $program is missing: apt install iproute2 nftables tayga" >&2
    exit 1
  }
done
ip -4 route show default | grep -q . || {
  echo "gateway.sh: this gateway has no IPv4 default route, so it reaches no IPv4 server: connect it first" >&2
  exit 1
}
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
nft --file nat44.nft
tayga --config "$PWD/tayga.conf" --mktun
ip link set nat64 up
ip route replace 10.64.0.0/16 dev nat64
ip route replace "$(sed -n 's/^prefix //p' tayga.conf)" dev nat64
exec tayga --nodetach --config "$PWD/tayga.conf"
