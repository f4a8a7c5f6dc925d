#!/bin/sh
# On the OpenWrt router: router advertisements with the NAT64 prefix and the DNS64 server, and DHCPv4 with option 108.
set -eu

uci set dhcp.lan.ra='server'
uci set dhcp.lan.dhcpv6='disabled'
uci -q delete dhcp.lan.ra_flags || true
uci add_list dhcp.lan.ra_flags='none'
uci set dhcp.lan.ra_pref64='64:ff9b::/96'
uci -q delete dhcp.lan.dns || true
uci add_list dhcp.lan.dns='2001:db8:c::53'
# dnsmasq is the DHCPv4 server: 1800 s without IPv4, in 32 bits.
uci -q delete dhcp.lan.dhcp_option || true
uci add_list dhcp.lan.dhcp_option='108,1800i'
uci commit dhcp
service odhcpd restart
service dnsmasq restart
