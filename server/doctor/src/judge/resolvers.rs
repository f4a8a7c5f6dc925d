//! The resolvers, each by itself, and whether they agree.

use super::listed;
use crate::facts::{Answer, Encrypted, Facts, Host, NameAnswers, Resolver, Reverse, is_loopback, shown};
use crate::finding::{Code, Finding};
use pref64::{Pref64, is_global};
use std::net::{IpAddr, Ipv4Addr};

/// The addresses of `ipv4only.arpa` (RFC 7050 section 8.2).
const WELL_KNOWN: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];

/// All resolvers. `is_right`: the clock is, by which certificates are judged.
pub fn judge(facts: &Facts, is_right: bool) -> Vec<Finding> {
    if facts.resolvers.is_empty() {
        return vec![none(facts)];
    }
    let mut findings = Vec::new();
    for resolver in &facts.resolvers {
        match transports(resolver, &facts.host) {
            Transports::Unusable(finding) => findings.extend(finding),
            Transports::Usable(finding) => {
                findings.extend(finding);
                if is_right {
                    let who = format!("the resolver {} offers", shown(resolver.address));
                    findings.extend(encrypted(resolver.encrypted.iter(), &who));
                }
                findings.extend(answers(resolver));
            }
        }
    }
    if is_right && facts.host.has_default_route {
        findings.extend(announced(facts));
    }
    findings.extend(disagreement(facts));
    findings
}

fn none(facts: &Facts) -> Finding {
    let routers = facts.routers.seen().into_iter().flatten();
    let cause = match routers.flat_map(|router| &router.resolvers).next() {
        Some(announced) => format!("the routers announce {announced}, but this host does not use it"),
        None => "neither its files nor the routers name one".to_owned(),
    };
    Finding {
        code: Code::NoResolver,
        what: "this host knows no resolver".to_owned(),
        cause,
        remedy:
            "let the routers announce one (RDNSS, RFC 8106) and a program take it over, or write it into \
                 /etc/resolv.conf"
                .to_owned(),
    }
}

/// The transports of a resolver that all clients use.
enum Transports {
    /// At least one has answers.
    Usable(Option<Finding>),
    /// None has.
    Unusable(Option<Finding>),
}

fn transports(resolver: &Resolver, host: &Host) -> Transports {
    let (address, udp, tcp) = (shown(resolver.address), resolver.udp, resolver.tcp);
    let finding = |code, what: String, cause: &str, remedy: &str| {
        Some(Finding { code, what, cause: cause.to_owned(), remedy: remedy.to_owned() })
    };
    if udp.is_success() || tcp.is_success() {
        return Transports::Usable(if !udp.is_success() {
            finding(
                Code::ResolverUdp,
                format!("the resolver {address} answers over TCP, but not over UDP ({})", word(udp)),
                "a filter drops UDP to port 53 or the answers, or the server has UDP switched off",
                "let UDP pass in both directions, and the server listen on it",
            )
        } else if !tcp.is_success() {
            finding(
                Code::ResolverTcp,
                format!("the resolver {address} answers over UDP, but not over TCP ({})", word(tcp)),
                "a filter or the server refuses TCP, so clients lose every answer that is too large for UDP (RFC 7766)",
                "let TCP to port 53 pass, and the server listen on it",
            )
        } else {
            None
        });
    }
    let failing = [udp, tcp].into_iter().find(|answer| answer.is_message());
    if let Some(Answer::Rcode(rcode)) = failing {
        let (cause, remedy) = failure(rcode);
        let what = format!("the resolver {address} answers with {}", rcode_word(rcode));
        return Transports::Unusable(finding(Code::ResolverFails, what, cause, remedy));
    }
    if resolver.address.is_ipv4() && !is_loopback(resolver.address) && !host.has_ipv4() {
        return Transports::Unusable(finding(
            Code::ResolverNeedsIpv4,
            format!("the resolver {address} cannot be reached"),
            "it has an IPv4 address, and this host has none",
            "name a resolver with an IPv6 address: in RDNSS (RFC 8106) or DHCPv6 instead of DHCPv4",
        ));
    }
    if !host.has_default_route && !is_near(resolver) {
        return Transports::Unusable(None);
    }
    let (cause, remedy) = match (udp, tcp) {
        (Answer::Garbage, _) | (_, Answer::Garbage) => (
            "another service answers there, or a device on the path does",
            "look at what listens on the port, and at the filters on the way",
        ),
        (Answer::Closed, _) | (_, Answer::Closed) => (
            "the host is there, but no server listens on the port",
            "start the server, or let it listen on this address",
        ),
        (Answer::Unreachable, _) | (_, Answer::Unreachable) => (
            "there is no route to it, or a router or filter rejects packets to it",
            "look at the route (ip route get) and at the filters on the way",
        ),
        _ => (
            "it does not run, a filter drops the packets, or its answers do not find the way back",
            "ask it from its own host, then look at the filters and routes between",
        ),
    };
    let what =
        format!("the resolver {address} does not answer over UDP ({}) or TCP ({})", word(udp), word(tcp));
    Transports::Unusable(finding(Code::ResolverSilent, what, cause, remedy))
}

/// True if the resolver is on this host or its link, so that no default route is needed.
fn is_near(resolver: &Resolver) -> bool {
    is_loopback(resolver.address)
        || matches!(resolver.address.ip(), IpAddr::V6(address) if address.is_unicast_link_local())
}

fn word(answer: Answer) -> String {
    match answer {
        Answer::Rcode(rcode) => rcode_word(rcode),
        Answer::Garbage => "no DNS message".to_owned(),
        Answer::Silent => "silent".to_owned(),
        Answer::Closed => "port closed".to_owned(),
        Answer::Unreachable => "unreachable".to_owned(),
    }
}

fn rcode_word(rcode: u16) -> String {
    match rcode {
        0 => "NOERROR".to_owned(),
        1 => "FORMERR".to_owned(),
        2 => "SERVFAIL".to_owned(),
        3 => "NXDOMAIN".to_owned(),
        4 => "NOTIMP".to_owned(),
        5 => "REFUSED".to_owned(),
        _ => format!("RCODE {rcode}"),
    }
}

fn failure(rcode: u16) -> (&'static str, &'static str) {
    match rcode {
        5 => (
            "this client is not among those that it serves",
            "add the network of this host to the server's list (Sixfold: `server.allow`)",
        ),
        2 => (
            "its own upstreams do not answer it, or answer wrongly",
            "look at the server's log and at its upstreams (Sixfold: sixfold ctl upstreams)",
        ),
        _ => ("the server cannot handle an ordinary question", "look at the server's log"),
    }
}

/// Encrypted transports that somebody offers. `who`: the somebody, with the verb.
fn encrypted<'f>(offered: impl Iterator<Item = &'f Encrypted>, who: &str) -> Vec<Finding> {
    let finding = |one: &Encrypted| {
        if let Some(why) = &one.failure {
            return Some(Finding {
                code: Code::ResolverEncrypted,
                what: format!("{who} DNS over {} at {}, but it does not work", one.transport, one.address),
                cause: why.clone(),
                remedy: "let the server listen there, over HTTPS with the path of the offer, and filters pass it, or \
                         withdraw the offer (DDR, DNR)"
                    .to_owned(),
            });
        }
        one.certificate.as_ref().map(|why| Finding {
            code: Code::ResolverCertificate,
            what: format!(
                "{who} DNS over {} at {} with a certificate that clients refuse",
                one.transport, one.address
            ),
            cause: why.clone(),
            remedy:
                "give the server a valid certificate with the name of the offer (Sixfold: `tls.certificate`, \
                     `tls.ddr-name`)"
                    .to_owned(),
        })
    };
    offered.filter_map(finding).collect()
}

/// Encrypted resolvers that routers announce, but for those that resolvers offer themselves with a fault of the same kind. The words may
/// differ: days since the end of a certificate become one more between two looks at it.
fn announced(facts: &Facts) -> Vec<Finding> {
    let of = |one: &Encrypted| (one.address, one.transport, one.failure.is_some(), one.certificate.is_some());
    let is_offered = |one: &Encrypted| {
        let mut own = facts.resolvers.iter().flat_map(|resolver| &resolver.encrypted);
        own.any(|known| of(known) == of(one))
    };
    let routers = facts.routers.seen().into_iter().flatten();
    routers
        .flat_map(|router| {
            let new = router.encrypted.iter().filter(|one| !is_offered(one));
            encrypted(new, &format!("the router {} announces", router.address))
        })
        .collect()
}

/// The answers of a resolver that has some.
fn answers(resolver: &Resolver) -> Vec<Finding> {
    if let Some(finding) = ipv4only_arpa(resolver) {
        return vec![finding];
    }
    let address = shown(resolver.address);
    let mut findings = Vec::new();
    if resolver.says_dns64 && !resolver.does_dns64() && resolver.synthesized.is_some() {
        findings.push(Finding {
            code: Code::ResolverInfo,
            what: format!(
                "the resolver {address} says that it does DNS64 (RESINFO), but ipv4only.arpa has no \
                           AAAA records there"
            ),
            cause: "it has no prefix now, or another server answers one of the two questions".to_owned(),
            remedy: "look at the server's prefixes (sixfold ctl prefixes), and ask all servers behind the \
                     address"
                .to_owned(),
        });
    }
    if resolver.does_dns64() {
        findings.extend(reverse(resolver, &address));
        findings.extend(resolver.name.seen().and_then(|name| of_name(name, &resolver.prefixes, &address)));
    }
    findings.extend(dnssec(resolver, &address));
    findings
}

/// True if the resolver needs no DNS64: it is asked over IPv4, by clients that therefore have IPv4, as this host has.
pub fn is_for_ipv4(resolver: &Resolver, host: &Host) -> bool {
    let is_ipv4 = resolver.address.is_ipv4() && !is_loopback(resolver.address);
    is_ipv4 && !resolver.does_dns64() && !host.ipv4.is_empty()
}

/// True if the answers for `ipv4only.arpa` came, and are not false.
pub fn is_honest(resolver: &Resolver) -> bool {
    resolver.answers() && resolver.synthesized.is_some() && ipv4only_arpa(resolver).is_none()
}

fn ipv4only_arpa(resolver: &Resolver) -> Option<Finding> {
    let of = |addresses: &[Ipv4Addr]| {
        WELL_KNOWN.iter().all(|known| addresses.contains(known))
            && addresses.iter().all(|one| WELL_KNOWN.contains(one))
    };
    let under = |address: [u8; 16]| {
        let embedded = resolver.prefixes.iter().find_map(|prefix| prefix.extract(address));
        embedded.is_some_and(|embedded| WELL_KNOWN.contains(&embedded.into()))
    };
    let synthesized = resolver.synthesized.iter().flatten();
    let mut strange = synthesized.filter(|address| !under(address.octets()));
    let cause = match (&resolver.ipv4only, strange.next()) {
        (Some(addresses), _) if !of(addresses) => format!(
            "its A records are {} instead of 192.0.0.170 and 192.0.0.171 (RFC 8880 section 7.1)",
            listed(addresses)
        ),
        (_, Some(address)) => {
            format!(
                "its AAAA record {address} has neither 192.0.0.170 nor 192.0.0.171 under a prefix (RFC 7050 section 3)"
            )
        }
        _ => return None,
    };
    Some(Finding {
        code: Code::Ipv4OnlyArpa,
        what: format!(
            "the resolver {} answers falsely for ipv4only.arpa, so hosts learn a wrong prefix or \
                       none",
            shown(resolver.address)
        ),
        cause,
        remedy:
            "take rules, blocklists and local records for ipv4only.arpa away, in the server and in those \
                 that it forwards to"
                .to_owned(),
    })
}

fn reverse(resolver: &Resolver, address: &str) -> Option<Finding> {
    let cause = match resolver.reverse.seen()? {
        Reverse::Known => return None,
        Reverse::Unknown(0) => "the answer has no name and no alias".to_owned(),
        Reverse::Unknown(rcode) => format!("the answer is {}", rcode_word(*rcode)),
        Reverse::Silent => "there is no answer".to_owned(),
    };
    Some(Finding {
        code: Code::ReverseName,
        what: format!(
            "the resolver {address} does not know the reverse names of the addresses that it makes"
        ),
        cause: format!("{cause} to the PTR question for a synthesized address (RFC 6147 section 5.3.1)"),
        remedy: "let the server answer the reverse zone of its prefix (Sixfold: `dns64.ptr`)".to_owned(),
    })
}

/// A name that has A records only, by the person who has named it.
fn of_name(name: &NameAnswers, prefixes: &[Pref64], address: &str) -> Option<Finding> {
    let may_embed =
        |v4: &Ipv4Addr| prefixes.iter().any(|prefix| !prefix.is_well_known() || is_global(v4.octets()));
    if name.ipv6.is_empty() && name.ipv4.iter().any(may_embed) {
        return Some(Finding {
            code: Code::NotSynthesized,
            what: format!(
                "the resolver {address} has no AAAA record for {}, which has {}",
                name.name,
                listed(&name.ipv4)
            ),
            cause: "DNS64 is on for ipv4only.arpa, but not for this name or these addresses".to_owned(),
            remedy: "look at the rules of the server (Sixfold: sixfold ctl explain NAME)".to_owned(),
        });
    }
    let is_synthesized = |v6: &std::net::Ipv6Addr| prefixes.iter().any(|prefix| prefix.contains(v6.octets()));
    name.validating.iter().find(|v6| is_synthesized(v6)).map(|v6| Finding {
        code: Code::ValidationBroken,
        what: format!(
            "the resolver {address} gives clients that validate the synthesized address {v6} for {}",
            name.name
        ),
        cause:
            "it synthesizes although DO and CD are set (RFC 6147 section 5.5), and no signature covers that"
                .to_owned(),
        remedy: "switch that off (Sixfold: `dns64.break-dnssec`, BIND: break-dnssec)".to_owned(),
    })
}

fn dnssec(resolver: &Resolver, address: &str) -> Vec<Finding> {
    let Some(dnssec) = resolver.dnssec.seen() else { return Vec::new() };
    if !dnssec.has_signatures {
        return vec![Finding {
            code: Code::SignaturesStripped,
            what: format!(
                "the resolver {address} takes signatures away, so no client behind it can validate"
            ),
            cause: "it, or a server that it forwards to, does not pass the DO bit on (RFC 3225)".to_owned(),
            remedy: "forward to servers that know DNSSEC (Sixfold: sixfold ctl upstreams)".to_owned(),
        }];
    }
    if dnssec.refuses_bogus == Some(true) && dnssec.obeys_cd == Some(false) {
        return vec![Finding {
            code: Code::CheckingDisabled,
            what: format!(
                "the resolver {address} refuses data that do not validate also to clients that set CD"
            ),
            cause: "it, or a server that it forwards to, ignores the bit (RFC 4035 section 3.2.2)".to_owned(),
            remedy: "forward to servers that obey CD".to_owned(),
        }];
    }
    Vec::new()
}

/// Resolvers that differ: which of them a host asks is chance.
fn disagreement(facts: &Facts) -> Option<Finding> {
    let honest: Vec<&Resolver> =
        facts.resolvers.iter().filter(|one| is_honest(one) && !is_for_ipv4(one, &facts.host)).collect();
    let (first, others) = honest.split_first()?;
    let is_same = |one: &&&Resolver| {
        one.prefixes.len() == first.prefixes.len()
            && one.prefixes.iter().all(|prefix| first.prefixes.contains(prefix))
    };
    let other = others.iter().find(|one| !is_same(one))?;
    let of = |one: &Resolver| match one.does_dns64() {
        true => format!("{} uses {}", shown(one.address), listed(&one.prefixes)),
        false => format!("{} does no DNS64", shown(one.address)),
    };
    Some(Finding {
        code: Code::ResolversDiffer,
        what: format!("the resolvers differ: {}, {}", of(first), of(other)),
        cause: "hosts ask any of them, so names and addresses change from one question to the next"
            .to_owned(),
        remedy: "give all of them the same prefixes, or let the network name only those that have them"
            .to_owned(),
    })
}
