#!/bin/sh
# Starts a stateful NAT64 in the kernel with jool.conf beside this script. As root; `jool instance remove default` ends it.
set -eu
cd "$(dirname "$0")"

echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
# Ports of the pool must not be those of connections of the gateway itself.
echo "32768 40000" > /proc/sys/net/ipv4/ip_local_port_range
modprobe jool
jool file handle jool.conf
