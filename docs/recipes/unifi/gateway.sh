#!/bin/sh
# Starts the translator of the host, with the files beside this one. As root; ends with TAYGA. It can be run again.
set -eu
cd "$(dirname "$0")"

echo 1 > /proc/sys/net/ipv4/ip_forward
# A host that forwards takes its own default route from advertisements only with 2.
echo 2 > /proc/sys/net/ipv6/conf/lan/accept_ra
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
nft --file nat44.nft
tayga --config "$PWD/tayga.conf" --mktun
ip link set nat64 up
ip route replace 10.64.0.0/16 dev nat64
ip route replace "$(sed -n 's/^prefix //p' tayga.conf)" dev nat64
exec tayga --nodetach --config "$PWD/tayga.conf"
