#!/bin/sh
# Starts the translator of a machine in the core, with the files beside this one: sh core.sh core1, or core2. As root; ends with TAYGA.
set -eu
cd "$(dirname "$0")"
conf=${1:?"core1 or core2"}.conf

echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
nft --file nat44.nft
tayga --config "$PWD/$conf" --mktun
ip link set nat64 up
ip route replace "$(sed -n 's/^dynamic-pool //p' "$conf")" dev nat64
ip route replace "$(sed -n 's/^prefix //p' "$conf")" dev nat64
exec tayga --nodetach --config "$PWD/$conf"
