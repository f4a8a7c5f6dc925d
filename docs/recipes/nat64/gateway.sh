#!/bin/sh
# Starts the translator of the gateway, with the files beside this one. As root; ends with TAYGA.
set -eu
cd "$(dirname "$0")"

echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
nft --file nat44.nft
tayga --config "$PWD/tayga.conf" --mktun
ip link set nat64 up
ip route add 10.64.0.0/16 dev nat64
ip route add "$(sed -n 's/^prefix //p' tayga.conf)" dev nat64
exec tayga --nodetach --config "$PWD/tayga.conf"
