#!/bin/sh
# Starts TAYGA with the mappings beside this script. As root; ends with TAYGA. It can be run again, and after each change of the file.
set -eu
cd "$(dirname "$0")"

made=$(mktemp)
{ cat tayga.conf; sed -n 's/#.*//; s/^[[:blank:]]*\([0-9]\)/map \1/p' mappings; } > "$made"
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
nft --file nat44.nft
tayga --config "$made" --mktun
ip link set nat64 up
ip route replace 10.64.0.0/16 dev nat64
ip route replace 2001:db8:c:46::/96 dev nat64
exec tayga --nodetach --config "$made"
