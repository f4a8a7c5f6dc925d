#!/bin/sh
# Starts the translator of a site, with the file beside this one: sh site.sh berlin, or paris. As root; ends with TAYGA.
set -eu
cd "$(dirname "$0")"
conf=${1:?"berlin or paris"}.conf

echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
tayga --config "$PWD/$conf" --mktun
ip link set via6 up
ip route replace "$(sed -n 's/^dynamic-pool //p' "$conf")" dev via6
ip route replace "$(sed -n 's/^prefix //p' "$conf")" dev via6
exec tayga --nodetach --config "$PWD/$conf"
