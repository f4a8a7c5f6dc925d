#!/bin/sh
# Starts the translator in the network of the host, with the files beside this one. Ends with TAYGA. It can be run again.
set -eu
cd "$(dirname "$0")"

# In a container the settings of the kernel cannot be written, and Docker has set these two already.
for setting in ipv4/ip_forward ipv6/conf/all/forwarding; do
  [ "$(cat /proc/sys/net/$setting)" = 1 ] || echo 1 > /proc/sys/net/$setting
done
nft --file nat44.nft
tayga --config "$PWD/tayga.conf" --mktun
ip link set nat64 up
ip route replace 10.64.0.0/16 dev nat64
ip route replace "$(sed -n 's/^prefix //p' tayga.conf)" dev nat64
ip route replace "$(sed -n 's/^ipv6-addr //p' tayga.conf)" dev nat64
exec tayga --nodetach --config "$PWD/tayga.conf"
