//! Upstreams over TLS: forwarders with a name (`192.0.2.53#dns.example`) or with pins of their keys (`192.0.2.53#sha256/...`), and
//! the trust anchors of `upstream.tls-ca`.
//!
//! A forwarder with an identity, which is a name, a pin or both, is asked over TLS, whatever `upstream.transport` is.
//! `transport = "tls"` demands one of every forwarder, so that no question leaves in the clear. The forwarders of one zone are of one
//! kind: a failover from TLS to UDP would be a way around TLS.

use super::forwarder::Forwarder;
use super::keys::Upstream;
use super::report::{Fault, Item, Problems};
use datapath::tls_upstreams::TlsUpstream;
use engine::settings::{TlsForwarder, Transport};
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use tls::anchors::{Anchors, client_config};
use tls::identity::Identity;

/// Checks the forwarders of one zone, and adds the identities of those with TLS. `known` has the forwarders of the zones before.
pub fn check(
    forwarders: &[Item<&Forwarder>],
    transport: Transport,
    known: &mut HashMap<SocketAddr, Option<Identity>>,
    problems: &Problems,
) {
    let is_mixed =
        forwarders.windows(2).any(|two| two[0].value.identity.is_some() != two[1].value.identity.is_some());
    for item in forwarders {
        let Forwarder { address, identity } = item.value;
        if identity.is_none() && transport == Transport::Tls {
            let what = format!("the forwarder {address} has no name, and `upstream.transport` is \"tls\"");
            let help = format!(
                "write the name in its certificate or a pin of its key (sha256/...) after a #, like \"{}#dns.example\"; with \
                 transport = \"udp\", forwarders with either are asked over TLS and the others over UDP",
                address.ip()
            );
            problems.add(&item.place, Fault::new(what, help));
        } else if identity.is_none() && is_mixed {
            let what =
                format!("the forwarder {address} has no name, and others of its zone are asked over TLS");
            let help = "give all forwarders of a zone a name or a pin after a #, or none: a question that TLS protects must \
                        not leave in the clear when a forwarder fails";
            problems.add(&item.place, Fault::new(what, help));
        }
        if let Some(before) = known.insert(*address, identity.clone()).filter(|before| before != identity) {
            problems.add(&item.place, two_ways(*address, before, identity.clone()));
        }
    }
}

/// The fault of a forwarder that stands in the configuration twice, with other identities.
fn two_ways(address: SocketAddr, before: Option<Identity>, here: Option<Identity>) -> Fault {
    let difference = match (&before, &here) {
        (Some(before), Some(here)) if before.name != here.name => "with two names",
        (Some(_), Some(_)) => "with other pins",
        _ => "with TLS and without",
    };
    let shown = |identity: Option<Identity>| Forwarder { address, identity }.to_string();
    let (encrypted, other) =
        if before.is_some() { (shown(before), shown(here)) } else { (shown(here), shown(before)) };
    Fault::new(
        format!("the forwarder {address} is written {difference}: `{encrypted}` and `{other}`"),
        format!("write it in the same way in [upstream] and in all zones, like \"{encrypted}\""),
    )
}

impl Upstream {
    /// The forwarders with TLS, for the engine.
    pub(super) fn tls_forwarders(&self) -> Vec<TlsForwarder> {
        let forwarder = |(&address, identity): (&SocketAddr, &Identity)| TlsForwarder {
            address: self.reached_at(address),
            identity: self.trust(identity),
        };
        self.identities.iter().map(forwarder).collect()
    }

    /// The forwarders with TLS, for the datapath. Forwarders with a name and no pins share their settings.
    pub fn tls_upstreams(&self) -> HashMap<SocketAddr, TlsUpstream> {
        let mut shared = None;
        let mut upstream = |address: SocketAddr, identity: &Identity| {
            let settings = || client_config(identity, self.anchors.as_ref()).ok();
            let config = if identity.pins.is_empty() {
                shared.get_or_insert_with(settings).clone()
            } else {
                settings()
            };
            let name = identity.name.clone().unwrap_or_else(|| ServerName::from(address.ip()));
            // The configuration was refused if the settings cannot be made; without them, the upstream is not asked.
            Some((address, TlsUpstream { name, trust: self.trust(identity), config: config? }))
        };
        let identities = self.identities.iter();
        identities.filter_map(|(&address, identity)| upstream(self.reached_at(address), identity)).collect()
    }

    /// A number for an identity and the trust anchors: equal ones have equal numbers while the process lives.
    fn trust(&self, identity: &Identity) -> u64 {
        let mut hasher = DefaultHasher::new();
        (identity, self.anchors.as_ref().map_or(0, Anchors::digest)).hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forwarder_that_is_written_in_two_ways_is_shown_in_both() {
        let told = |before: &str, here: &str| {
            let identity = |text: &str| Identity::parse(text).ok();
            two_ways("192.0.2.53:853".parse().unwrap(), identity(before), identity(here))
        };
        assert_eq!(
            told("a.example", "b.example").what,
            "the forwarder 192.0.2.53:853 is written with two names: `192.0.2.53:853#a.example` and `192.0.2.53:853#b.example`"
        );
        let fault = told("", "a.example");
        assert!(fault.what.contains("is written with TLS and without: "), "{}", fault.what);
        assert!(fault.help.ends_with("like \"192.0.2.53:853#a.example\""), "{}", fault.help);
        let pin = format!("sha256/{}=", "A".repeat(43));
        assert!(told("a.example", &format!("a.example#{pin}")).what.contains("with other pins"));
    }
}
