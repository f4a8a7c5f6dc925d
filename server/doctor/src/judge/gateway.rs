//! The gateways: what passes through each prefix, by packets of this host and by the word of the server.

use crate::facts::{Facts, Looked, Passage, Path};
use crate::finding::{Code, Finding};
use pref64::Pref64;

/// Judges all gateways. `blamed`: prefixes about which there is a finding.
pub fn judge(facts: &Facts, blamed: &[Pref64]) -> Vec<Finding> {
    let paths = facts.paths.seen().map(Vec::as_slice).unwrap_or_default();
    let mut findings = Vec::new();
    for path in paths {
        if passes(path) {
            findings.extend(part(path));
        } else if !blamed.contains(&path.prefix) {
            findings.push(dead(path, paths));
        }
    }
    let is_tried = |prefix: &Pref64| paths.iter().any(|path| path.prefix == *prefix);
    for one in facts.server.seen().into_iter().flatten() {
        if one.is_down && !is_tried(&one.prefix) && !blamed.contains(&one.prefix) {
            findings.push(down(one.prefix));
        }
    }
    findings
}

/// True if anything passes.
pub fn passes(path: &Path) -> bool {
    path.tcp.has_passed() || path.udp.has_passed() || has_passed(&path.icmp)
}

fn has_passed(passage: &Looked<Passage>) -> bool {
    passage.seen().is_some_and(|passage| passage.has_passed())
}

fn dead(path: &Path, all: &[Path]) -> Finding {
    let Path { prefix, target, .. } = path;
    let is_target_alive = all.iter().any(|other| other.target == *target && passes(other));
    let is_rejected =
        [Some(&path.tcp), Some(&path.udp), path.icmp.seen()].contains(&Some(&Passage::Unreachable));
    let cause = match (is_target_alive, is_rejected) {
        (_, true) => "a router has no route for the prefix, or a filter rejects the packets",
        (true, _) => {
            "the gateway is dead, or packets for its prefix do not reach it: another prefix passes to the same address"
        }
        _ => "the gateway is dead, packets for its prefix do not reach it, or the target itself is silent",
    };
    Finding {
        code: Code::GatewayDead,
        what: format!("nothing passes through {prefix} to {}: no TCP, UDP or ICMP", target.ip()),
        cause: cause.to_owned(),
        remedy: format!(
            "look at the route for {prefix} on the routers, at the translator, and at its route to IPv4"
        ),
    }
}

fn down(prefix: Pref64) -> Finding {
    Finding {
        code: Code::GatewayDead,
        what: format!("the server on this host says that the gateway of {prefix} is down"),
        cause: "its probes have no answer".to_owned(),
        remedy: "see sixfold ctl prefixes; then look at the translator and the routes to it".to_owned(),
    }
}

/// Findings about a gateway that passes something.
fn part(path: &Path) -> Vec<Finding> {
    let (prefix, target) = (path.prefix, path.target);
    let mut findings = Vec::new();
    let mut find = |code, what: String, cause: &str, remedy: &str| {
        findings.push(Finding { code, what, cause: cause.to_owned(), remedy: remedy.to_owned() });
    };
    let filter = "a filter on the way, or the translator, drops them";
    if !path.tcp.has_passed() {
        let what = format!("no TCP passes through {prefix} to {target}, although other packets do");
        find(
            Code::GatewayTcp,
            what,
            filter,
            "let TCP pass in both directions, and look at the table of sessions",
        );
    }
    if !path.udp.has_passed() {
        let what = format!("no UDP passes through {prefix} to {target}, although other packets do");
        find(
            Code::GatewayUdp,
            what,
            filter,
            "let UDP pass in both directions; the target must answer it, as a DNS server does",
        );
    }
    let Some(icmp) = path.icmp.seen() else { return findings };
    if !icmp.has_passed() {
        let what =
            format!("no ICMP echo passes through {prefix} to {}, although other packets do", target.ip());
        let cause = "a filter drops ICMP; with it go the errors that path MTU discovery needs (RFC 4890)";
        find(Code::GatewayIcmp, what, cause, "let ICMPv6 and ICMPv4 pass");
        return findings;
    }
    if path.smallest_mtu.seen().is_some_and(|passage| !passage.has_passed()) {
        let what = format!("packets of 1280 bytes do not pass through {prefix}, although small ones do");
        let cause = "a tunnel on the way has a smaller MTU than IPv6 allows (RFC 8200 section 5)";
        find(Code::PathMtu, what, cause, "raise the MTU of the tunnel, or let it fragment its own packets");
        return findings;
    }
    if path.udp.has_passed() && path.fragments.seen().is_some_and(|passage| !passage.has_passed()) {
        let what = format!("fragments vanish through {prefix}, although whole datagrams pass");
        let cause = "a filter drops them, or the translator does not take them (RFC 6146 section 3.4)";
        let remedy = "let fragments pass: a rule for ports must not drop those without a port; look at the \
                      translator's setting for them";
        find(Code::Fragments, what, cause, remedy);
        // Replies to large echo requests come in fragments, too: the translator splits what has no DF bit (RFC 7915 section 4).
        return findings;
    }
    if path.link_mtu.seen() == Some(&Passage::Lost) {
        let what = format!("large packets vanish through {prefix}, without an ICMP error");
        let cause = "a link on the way has a smaller MTU, and the error Packet Too Big does not come back (RFC \
                     8201 section 1)";
        let remedy = "let ICMPv6 type 2 and ICMPv4 type 3 code 4 pass, or announce the smaller MTU in the \
                      router advertisements";
        find(Code::BlackHole, what, cause, remedy);
    }
    findings
}
