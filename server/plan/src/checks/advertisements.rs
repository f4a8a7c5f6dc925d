//! Router advertisements: intervals and lifetimes.

use crate::agreed::pref64_lifetime_s;
use crate::contradiction::Contradiction;
use crate::input::{Advertiser, Description, Input};
use crate::options::LONGEST_PREF64_S;

/// Longest time between two advertisements (RFC 4861 section 6.2.1), in seconds.
const INTERVAL_S: std::ops::RangeInclusive<u32> = 4..=1800;

/// Longest lifetime of a router (RFC 4861 section 6.2.1), in seconds.
const LONGEST_ROUTER_S: u32 = 9000;

/// Reports times that do not go together.
pub fn check(input: &Input, found: &mut Vec<Contradiction>) {
    let network = &input.network;
    if matches!(network.advertiser, Advertiser::None | Advertiser::Elsewhere) {
        return;
    }
    if !INTERVAL_S.contains(&network.interval_s) {
        let what = format!(
            "{} s between router advertisements: RFC 4861 section 6.2.1 allows 4 s to 1800 s",
            network.interval_s
        );
        found.push(Contradiction::at(
            "interval",
            what,
            "write interval = \"10m\", or another time in that range",
        ));
    }
    router_lifetime(network, found);
    if network.has_nat64() {
        prefix_lifetime(network, found);
    }
}

fn router_lifetime(network: &Description, found: &mut Vec<Contradiction>) {
    let lifetime = network.router_lifetime_s;
    if lifetime < network.interval_s || lifetime > LONGEST_ROUTER_S {
        let what = format!(
            "a router that is valid for {lifetime} s and announced every {} s: RFC 4861 section 6.2.1 asks for at \
             least the interval, \
             and at most {LONGEST_ROUTER_S} s",
            network.interval_s
        );
        let remedy = format!(
            "write router-lifetime = \"{}s\", three intervals",
            (3 * network.interval_s).min(LONGEST_ROUTER_S)
        );
        found.push(Contradiction::at("router-lifetime", what, remedy));
    }
}

fn prefix_lifetime(network: &Description, found: &mut Vec<Contradiction>) {
    let Some(lifetime) = network.pref64_lifetime_s else { return };
    let without = network_without_lifetime(network);
    let fitting = pref64_lifetime_s(&without);
    let why = if lifetime > LONGEST_PREF64_S {
        format!("the option has 13 bits in units of 8 s, at most {LONGEST_PREF64_S} s")
    } else if lifetime < network.router_lifetime_s {
        format!(
            "the router itself is valid for {} s, and its clients would lose IPv4 servers before",
            network.router_lifetime_s
        )
    } else if lifetime < (3 * network.interval_s).min(LONGEST_PREF64_S) {
        format!("advertisements come every {} s, and two of them may be lost", network.interval_s)
    } else {
        return;
    };
    let what = format!("a NAT64 prefix that is valid for {lifetime} s: {why} (RFC 8781 section 4.1)");
    let remedy = format!("leave `pref64-lifetime` out, or write \"{fitting}s\"");
    found.push(Contradiction::at("pref64-lifetime", what, remedy));
}

fn network_without_lifetime(network: &Description) -> Description {
    Description { pref64_lifetime_s: None, ..network.clone() }
}
