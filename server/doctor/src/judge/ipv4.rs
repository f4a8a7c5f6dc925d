//! The way to IPv4-only servers: IPv4, a CLAT, or DNS64; and option 108, by which hosts give up the first.

use super::resolvers::is_honest;
use super::{announced, told};
use crate::facts::{Facts, Offer, Wait};
use crate::finding::{Code, Finding};

/// Judges what the network offers beside and instead of IPv4.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let offers: Vec<&Offer> = facts.offers.seen().into_iter().flatten().collect();
    let mut findings: Vec<Finding> = offers.iter().filter_map(|offer| malformed(offer)).collect();
    let is_valid = |offer: &&&Offer| matches!(offer.ipv6_only, Some(Wait::Secs(_)));
    let with: Vec<&&Offer> = offers.iter().filter(is_valid).collect();
    if let Some(with) = with.first()
        && facts.routers.seen().is_some()
        && !has_prefix(facts)
        && facts.resolvers.iter().all(is_honest)
    {
        findings.push(without_nat64(with));
        return findings;
    }
    if let (Some(with), Some(without)) = (with.first(), offers.iter().find(|offer| offer.ipv6_only.is_none()))
    {
        findings.push(differs(with, without));
    }
    findings.extend(no_way(facts));
    findings
}

/// True if anybody tells of a prefix.
fn has_prefix(facts: &Facts) -> bool {
    let malformed = facts.routers.seen().into_iter().flatten().any(|router| router.malformed > 0);
    malformed || !told(facts).is_empty() || !announced(facts).is_empty()
}

fn malformed(offer: &Offer) -> Option<Finding> {
    let Some(Wait::Malformed(octets)) = offer.ipv6_only else { return None };
    Some(Finding {
        code: Code::Option108Malformed,
        what: format!("the DHCP server {} sends option 108 with a value that clients ignore", offer.server),
        cause: format!("it has {octets} bytes instead of 4 (RFC 8925 section 3.1)"),
        remedy: "write the number of seconds as a 32-bit integer (dnsmasq: dhcp-option=108,1800i; Kea: \
                 v6-only-preferred)"
            .to_owned(),
    })
}

fn without_nat64(offer: &Offer) -> Finding {
    Finding {
        code: Code::Option108WithoutNat64,
        what: format!(
            "the DHCP server {} offers option 108, but nothing here tells of a NAT64",
            offer.server
        ),
        cause: "hosts that know the option give up IPv4 (RFC 8925), and then reach no IPv4-only server"
            .to_owned(),
        remedy:
            "set up NAT64, and announce its prefix by PREF64 and DNS64, or take the option out of the DHCP \
                 server"
                .to_owned(),
    }
}

fn differs(with: &Offer, without: &Offer) -> Finding {
    Finding {
        code: Code::Option108Differs,
        what: format!("the DHCP server {} offers option 108, and {} does not", with.server, without.server),
        cause: "the server that answers first decides about IPv4".to_owned(),
        remedy: "configure all DHCP servers of the link alike, or end the one that does not belong there"
            .to_owned(),
    }
}

/// The host reaches no IPv4-only server, and no other finding says why.
fn no_way(facts: &Facts) -> Option<Finding> {
    let mut answering = facts.resolvers.iter().filter(|one| one.answers()).peekable();
    if answering.peek().is_none() || !answering.all(|one| is_honest(one) && !one.does_dns64()) {
        return None;
    }
    let host = &facts.host;
    let is_idle = host.clat.is_some() && host.ipv4.is_empty() && facts.routers.seen().is_some();
    let (cause, remedy) = match has_prefix(facts) {
        _ if host.has_ipv4() && !is_idle => return None,
        true if host.clat.is_some() => return None,
        true => (
            "the routers announce a NAT64 prefix, but this host has no CLAT that uses it, and no resolver does DNS64",
            "switch DNS64 on for hosts like this one, or CLAT on this host",
        ),
        false if is_idle => (
            "it has a CLAT, but neither routers nor resolvers tell the prefix that it needs",
            "announce the prefix by PREF64 (RFC 8781), or switch DNS64 on",
        ),
        false => (
            "it has no IPv4 address, and neither routers nor resolvers tell of a NAT64",
            "set up NAT64 and DNS64, and announce the prefix by PREF64 (RFC 8781)",
        ),
    };
    Some(Finding {
        code: Code::NoWayToIpv4,
        what: "this host has no way to IPv4-only servers".to_owned(),
        cause: cause.to_owned(),
        remedy: remedy.to_owned(),
    })
}
