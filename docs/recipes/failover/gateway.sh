#!/bin/sh
# Starts a translator, with the files beside this one: sh gateway.sh first, or second. As root; ends with TAYGA.
set -eu
cd "$(dirname "$0")"
name=${1:?"first or second"}

for program in ip nft tayga; do
  command -v "$program" > /dev/null || {
    echo "gateway.sh: $program is missing: apt install iproute2 nftables tayga" >&2
    exit 1
  }
done
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
nft --file nat44.nft
tayga --config "$PWD/$name.conf" --mktun
ip link set "$name" up
ip route replace "$(sed -n 's/^dynamic-pool //p' "$name.conf")" dev "$name"
ip route replace "$(sed -n 's/^prefix //p' "$name.conf")" dev "$name"
exec tayga --nodetach --config "$PWD/$name.conf"
