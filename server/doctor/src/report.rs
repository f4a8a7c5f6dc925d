//! Facts and findings as lines for people, and as one JSON object for scripts.

use crate::facts::{
    Answer, Encrypted, Facts, Looked, Offer, Passage, Path, Resolver, Reverse, Router, ServerPrefix, Wait,
    shown,
};
use crate::finding::Finding;
use serde_json::{Value, json};
use std::fmt::Display;

/// A line for each thing that was seen, for each finding, and for each thing that could not be looked at.
pub fn text(facts: &Facts, findings: &[Finding]) -> String {
    let mut lines: Vec<String> = seen(facts).into_iter().map(|line| format!("seen: {line}")).collect();
    lines.extend(findings.iter().map(ToString::to_string));
    lines.extend(not_looked_at(facts).into_iter().map(|(what, why)| format!("not looked at: {what}: {why}")));
    lines.push(match findings.len() {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        number => format!("{number} findings"),
    });
    lines.join("\n") + "\n"
}

/// The same as an object: `findings`, `not_looked_at` and `seen`.
pub fn json(facts: &Facts, findings: &[Finding]) -> Value {
    let finding = |one: &Finding| {
        json!({
            "code": one.code.word(),
            "severity": one.severity().word(),
            "finding": one.what,
            "cause": one.cause,
            "remedy": one.remedy,
        })
    };
    let not = not_looked_at(facts).into_iter().map(|(what, why)| json!({ "what": what, "why": why }));
    json!({
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        "not_looked_at": not.collect::<Vec<_>>(),
        "seen": {
            "host": host(facts),
            "routers": facts.routers.seen().map(|all| all.iter().map(router).collect::<Vec<_>>()),
            "dhcp": facts.offers.seen().map(|all| all.iter().map(offer).collect::<Vec<_>>()),
            "resolvers": facts.resolvers.iter().map(resolver).collect::<Vec<_>>(),
            "server": facts.server.seen().map(|all| all.iter().map(server_prefix).collect::<Vec<_>>()),
            "paths": facts.paths.seen().map(|all| all.iter().map(path).collect::<Vec<_>>()),
        },
    })
}

fn host(facts: &Facts) -> Value {
    let host = &facts.host;
    json!({
        "interface": host.interface,
        "mtu": host.mtu,
        "ipv6": strings(&host.ipv6),
        "ipv4": strings(&host.ipv4),
        "clat": host.clat.map(|address| address.to_string()),
        "default_route": host.has_default_route,
    })
}

fn router(router: &Router) -> Value {
    let prefixes = router.prefixes.iter();
    let prefixes =
        prefixes.map(|one| json!({ "prefix": one.prefix.to_string(), "lifetime_s": one.lifetime_secs }));
    json!({
        "address": router.address.to_string(),
        "lifetime_s": router.lifetime_secs,
        "mtu": router.mtu,
        "resolvers": strings(&router.resolvers),
        "prefixes": prefixes.collect::<Vec<_>>(),
        "encrypted": router.encrypted.iter().map(encrypted).collect::<Vec<_>>(),
    })
}

fn offer(offer: &Offer) -> Value {
    let wait = match offer.ipv6_only {
        Some(Wait::Secs(secs)) => Some(secs),
        Some(Wait::Malformed(_)) | None => None,
    };
    json!({
        "server": offer.server.to_string(),
        "address": offer.address.to_string(),
        "option_108": offer.ipv6_only.is_some(),
        "option_108_s": wait,
    })
}

fn resolver(resolver: &Resolver) -> Value {
    json!({
        "address": resolver.address.to_string(),
        "udp": resolver.udp.is_success(),
        "tcp": resolver.tcp.is_success(),
        "encrypted": resolver.encrypted.iter().map(encrypted).collect::<Vec<_>>(),
        "prefixes": strings(&resolver.prefixes),
        "says_dns64": resolver.says_dns64,
        "reverse_names": resolver.reverse.seen().map(|reverse| *reverse == Reverse::Known),
        "signatures": resolver.dnssec.seen().map(|dnssec| dnssec.has_signatures),
    })
}

fn encrypted(one: &Encrypted) -> Value {
    json!({
        "transport": one.transport,
        "address": one.address.to_string(),
        "failure": one.failure,
        "certificate_fault": one.certificate,
    })
}

fn server_prefix(one: &ServerPrefix) -> Value {
    json!({ "prefix": one.prefix.to_string(), "down": one.is_down })
}

fn path(path: &Path) -> Value {
    let passed = |passage: &Looked<Passage>| passage.seen().map(|passage| passage.has_passed());
    json!({
        "prefix": path.prefix.to_string(),
        "target": path.target.to_string(),
        "tcp": path.tcp.has_passed(),
        "udp": path.udp.has_passed(),
        "icmp": passed(&path.icmp),
        "mtu_1280": passed(&path.smallest_mtu),
        "link_mtu": passed(&path.link_mtu),
        "fragments": passed(&path.fragments),
    })
}

fn strings(things: &[impl Display]) -> Vec<String> {
    things.iter().map(ToString::to_string).collect()
}

/// What was not looked at, with the reason; a thing that several resolvers or gateways share is there once.
fn not_looked_at(facts: &Facts) -> Vec<(&'static str, &str)> {
    let mut all: Vec<(&'static str, Option<&str>)> = Vec::new();
    all.push(("router advertisements", reason(&facts.routers)));
    all.push(("DHCP option 108", reason(&facts.offers)));
    all.push(("the server on this host", reason(&facts.server)));
    for resolver in facts.resolvers.iter().filter(|resolver| resolver.answers()) {
        all.push(("reverse names", reason(&resolver.reverse)));
        all.push(("a name with A records only", reason(&resolver.name)));
        all.push(("DNSSEC", reason(&resolver.dnssec)));
    }
    all.push(("the gateway", reason(&facts.paths)));
    for path in facts.paths.seen().into_iter().flatten() {
        all.push(("ICMP through the gateway", reason(&path.icmp)));
        all.push(("the smallest MTU through the gateway", reason(&path.smallest_mtu)));
        all.push(("the MTU of the link through the gateway", reason(&path.link_mtu)));
        all.push(("fragments through the gateway", reason(&path.fragments)));
    }
    let mut found: Vec<(&'static str, &str)> = Vec::new();
    for (what, why) in all.into_iter().filter_map(|(what, why)| Some((what, why?))) {
        if !found.contains(&(what, why)) {
            found.push((what, why));
        }
    }
    found
}

fn reason<T>(looked: &Looked<T>) -> Option<&str> {
    match looked {
        Looked::Seen(_) => None,
        Looked::Not(why) => Some(why),
    }
}

/// Lines about what was seen.
fn seen(facts: &Facts) -> Vec<String> {
    let host = &facts.host;
    let mut lines = vec![format!(
        "host: {} with an MTU of {} bytes; IPv6 {}; IPv4 {}; CLAT {}; default route {}",
        host.interface,
        host.mtu,
        words(&host.ipv6),
        words(&host.ipv4),
        host.clat.map_or_else(|| "none".to_owned(), |address| address.to_string()),
        if host.has_default_route { "there" } else { "none" },
    )];
    if let Some([]) = facts.routers.seen().map(Vec::as_slice) {
        lines.push("router: none".to_owned());
    }
    lines.extend(facts.routers.seen().into_iter().flatten().map(router_line));
    if let Some([]) = facts.offers.seen().map(Vec::as_slice) {
        lines.push("DHCPv4: no server".to_owned());
    }
    lines.extend(facts.offers.seen().into_iter().flatten().map(offer_line));
    lines.extend(facts.resolvers.iter().map(resolver_line));
    if let Some(own) = facts.server.seen() {
        let state =
            |one: &ServerPrefix| format!("{}{}", one.prefix, if one.is_down { " (down)" } else { "" });
        let prefixes: Vec<String> = own.iter().map(state).collect();
        lines.push(format!("Sixfold on this host: prefix {}", words(&prefixes)));
    }
    lines.extend(facts.paths.seen().into_iter().flatten().map(path_line));
    lines
}

fn router_line(router: &Router) -> String {
    let prefixes: Vec<String> =
        router.prefixes.iter().map(|one| format!("{} for {} s", one.prefix, one.lifetime_secs)).collect();
    let (prefixes, resolvers) = (words(&prefixes), words(&router.resolvers));
    let lifetime =
        router.lifetime_secs.map(|secs| format!("default router for {secs} s; ")).unwrap_or_default();
    let mtu = router.mtu.map(|mtu| format!("MTU {mtu}; ")).unwrap_or_default();
    format!(
        "router {}: {lifetime}{mtu}PREF64 {prefixes}; RDNSS {resolvers}{}",
        router.address,
        transports(&router.encrypted)
    )
}

fn offer_line(offer: &Offer) -> String {
    let wait = match offer.ipv6_only {
        Some(Wait::Secs(secs)) => format!("option 108 for {secs} s"),
        Some(Wait::Malformed(_)) => "a malformed option 108".to_owned(),
        None => "no option 108".to_owned(),
    };
    format!("DHCPv4 server {}: {wait}", offer.server)
}

fn resolver_line(resolver: &Resolver) -> String {
    let works = |answer: Answer| if answer.is_success() { "answers" } else { "does not answer" };
    let reverse = match resolver.reverse.seen() {
        None => "",
        Some(Reverse::Known) => "; reverse names known",
        Some(_) => "; reverse names not known",
    };
    let signatures = match resolver.dnssec.seen().map(|dnssec| dnssec.has_signatures) {
        None => "",
        Some(true) => "; signatures pass",
        Some(false) => "; no signatures",
    };
    format!(
        "resolver {}: UDP {}; TCP {}; prefix {}{reverse}{signatures}{}",
        shown(resolver.address),
        works(resolver.udp),
        works(resolver.tcp),
        words(&resolver.prefixes),
        transports(&resolver.encrypted)
    )
}

/// The end of a line: what became of encrypted transports.
fn transports(encrypted: &[Encrypted]) -> String {
    let word = |one: &Encrypted| match (&one.failure, &one.certificate) {
        (Some(_), _) => "does not answer",
        (None, Some(_)) => "answers with a wrong certificate",
        (None, None) => "answers",
    };
    encrypted.iter().map(|one| format!("; {} {}", one.transport, word(one))).collect()
}

fn path_line(path: &Path) -> String {
    let word = |passage: Option<Passage>| match passage {
        None => "not tried".to_owned(),
        Some(Passage::Passed) => "passes".to_owned(),
        Some(Passage::TooBig) => "is too big, which an ICMP error says".to_owned(),
        Some(Passage::Unreachable) => "is rejected".to_owned(),
        Some(Passage::Lost) => "is lost".to_owned(),
    };
    format!(
        "gateway of {} to {}: TCP {}; UDP {}; ICMP {}; a packet of 1280 bytes {}; one of the link's MTU {}; a \
         fragment {}",
        path.prefix,
        path.target,
        word(Some(path.tcp)),
        word(Some(path.udp)),
        word(path.icmp.seen().copied()),
        word(path.smallest_mtu.seen().copied()),
        word(path.link_mtu.seen().copied()),
        word(path.fragments.seen().copied()),
    )
}

fn words(things: &[impl Display]) -> String {
    if things.is_empty() { "none".to_owned() } else { strings(things).join(" ") }
}

#[cfg(test)]
mod tests {
    use crate::finding::Code;

    #[test]
    fn the_page_of_the_findings_has_each_code_with_its_severity_and_no_other() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/doctor-findings.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rows = page.lines().filter(|line| line.starts_with("| `"));
        let told: Vec<(&str, &str)> = rows
            .map(|row| {
                let mut cells = row.split('|').map(str::trim).skip(1);
                (cells.next().unwrap().trim_matches('`'), cells.next().unwrap())
            })
            .collect();
        let real: Vec<(&str, &str)> =
            Code::ALL.iter().map(|code| (code.word(), code.severity().word())).collect();
        assert_eq!(told, real, "left: docs/reference/doctor-findings.md, right: the codes");
    }
}
