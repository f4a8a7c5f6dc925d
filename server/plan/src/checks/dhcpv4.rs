//! DHCPv4: networks to serve, and the option that tells clients to do without IPv4 (RFC 8925).

use crate::agreed::Agreed;
use crate::contradiction::Contradiction;
use crate::input::{Advertiser, Dhcpv4, Gateway, Input};

/// Least time for which a client does without IPv4 (MIN_V6ONLY_WAIT of RFC 8925 section 3.4), in seconds.
const LEAST_WAIT_S: u32 = 300;

/// Reports a server without networks, and the option where clients could not do without IPv4.
pub fn check(input: &Input, found: &mut Vec<Contradiction>) {
    let network = &input.network;
    if network.dhcpv4 == Dhcpv4::None {
        return;
    }
    if Agreed::of(input).links.iter().all(|link| link.ipv4.is_none()) {
        let what = "a DHCPv4 server, and no interface of clients has an IPv4 network with addresses for them";
        let remedy = "add this machine's IPv4 address to the `addresses` of the interface, like \"192.168.7.1/24\", \
                      or write dhcpv4 = \"none\"";
        found.push(Contradiction::at("dhcpv4", what, remedy));
    }
    if !network.offers_v6_only() {
        return;
    }
    if network.v6_only_wait_s < LEAST_WAIT_S {
        let what = format!(
            "clients would do without IPv4 for {} s, and they take less than {LEAST_WAIT_S} s as {LEAST_WAIT_S} s \
             (RFC 8925 section 3.4)",
            network.v6_only_wait_s
        );
        let remedy = "write v6-only-wait = \"30m\", or \"0s\" to leave option 108 out";
        found.push(Contradiction::at("v6-only-wait", what, remedy));
    }
    let reason = if network.gateway == Gateway::None {
        "there is no NAT64 (`network.gateway`): they would reach no IPv4 server at all"
    } else if network.advertiser == Advertiser::None {
        "nobody announces the NAT64 prefix to them (`network.advertiser`): programs with IPv4 literals would not work"
    } else {
        return;
    };
    let what = format!("option 108 tells clients to do without IPv4, and {reason} (RFC 8925 section 4)");
    let remedy = "name the gateway and the advertiser, with \"elsewhere\" for another machine, or write v6-only-wait \
                  = \"0s\"";
    found.push(Contradiction::at("v6-only-wait", what, remedy));
}
