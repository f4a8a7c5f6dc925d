#!/bin/sh
# 464XLAT on a client without IPv4 (RFC 6877): IPv4 programs and literal addresses are carried over the network's NAT64.
# As root; it runs until it is ended. Usage: clat.sh DEVICE ADDRESS
#   DEVICE   the network device of this client
#   ADDRESS  an unused IPv6 address of its network, for the translator
set -eu
device=$1 address=$2

# RFC 7050: the DNS64 server embeds 192.0.0.170 (c000:aa) and 192.0.0.171 (c000:ab) in its prefix. This script knows the prefix
# length 96 only, where these are the last 32 bits.
prefix=$(dig +short AAAA ipv4only.arpa | sed -n 's/:c000:a[ab]$/:/p' | head -n 1)
case $prefix in
  "") echo "clat.sh: no NAT64 prefix of 96 bits: is the DNS64 server in /etc/resolv.conf?" >&2; exit 1 ;;
  *::) prefix=$prefix/96 ;;
  *) prefix=${prefix}0:0/96 ;;
esac
echo "clat.sh: the NAT64 prefix is $prefix"

# 192.0.0.0/29 is reserved for this (RFC 7335): .1 is this host, .2 is TAYGA.
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
printf '%s\n' 'tun-device clat' 'ipv4-addr 192.0.0.2' "prefix $prefix" "map 192.0.0.1 $address" > "$directory/tayga.conf"
tayga --config "$directory/tayga.conf" --mktun
ip link set clat up mtu 1480          # the IPv6 header is 20 octets longer, and the network carries 1500
ip address add 192.0.0.1 dev clat
ip route add default dev clat
ip route add "$address" dev clat

# The translator's packets are forwarded, and this host answers neighbour solicitations for its address. accept_ra=2: a host
# that forwards would ignore router advertisements.
echo 2 > "/proc/sys/net/ipv6/conf/$device/accept_ra"
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
echo 1 > "/proc/sys/net/ipv6/conf/$device/proxy_ndp"
ip neighbour add proxy "$address" dev "$device"
tayga --nodetach --config "$directory/tayga.conf"
