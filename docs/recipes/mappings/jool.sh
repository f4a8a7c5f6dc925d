#!/bin/sh
# Starts a stateless translator in the kernel with the mappings beside this script. As root; `jool_siit instance remove default` ends it.
set -eu
cd "$(dirname "$0")"

echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
modprobe jool_siit
jool_siit instance add default --netfilter
# The networks of a table may overlap, and the longest prefix decides, as in Sixfold.
sed 's/#.*//' mappings | while read -r four six; do
  [ -z "$four" ] || jool_siit --instance default eamt add --force "$four" "$six"
done
