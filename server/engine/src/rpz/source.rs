//! Sources of rules, for operators: the zone, its file, the line and the trigger behind a decision. Only explanations and traces ask
//! for them.

use crate::rpz::table::{ReplyAddresses, ResponsePolicy, Trigger};
use crate::trace::RuleSource;
use core::fmt;
use core::net::Ipv6Addr;
use wire::Name;

impl ResponsePolicy {
    /// Finds the source of a rule that was found for one of these: the name, the client, the addresses of a reply. None: the rule
    /// comes from something else, or is gone after a reload.
    #[cold]
    pub(crate) fn source(
        &self,
        rule: u32,
        name: &[u8],
        client: Option<Ipv6Addr>,
        reply: Option<&ReplyAddresses<'_, '_>>,
    ) -> Option<RuleSource> {
        let zone = usize::from(self.rule_of(rule)?.0.zone);
        let of_client = || {
            let place = client.map(|client| self.client_place(client))?;
            (self.client_rules.get(place) == Some(&rule)).then(|| self.client_sources.get(place))?
        };
        let of_addresses = || {
            let place = self.address_place(reply?);
            (self.address_rules.get(place) == Some(&rule)).then(|| self.address_sources.get(place))?
        };
        let (trigger, line) = match (of_client(), of_addresses()) {
            (Some(&(network, line)), _) => (Trigger::Client(network), line),
            (None, Some(&(network, line))) => (Trigger::Address(network), line),
            (None, None) => self.source_of_name(rule, name)?,
        };
        Some(RuleSource {
            zone: self.soas.get(zone)?.owner.clone(),
            file: self.files.get(zone)?.clone(),
            line: Some(line).filter(|&line| line > 0),
            kind: trigger.kind(),
            trigger: trigger.to_string().into(),
        })
    }

    /// The trigger of a rule for a name, and its line.
    fn source_of_name(&self, rule: u32, name: &[u8]) -> Option<(Trigger, u32)> {
        let mut found = None;
        self.names.find(name, |number, before| {
            let node = &self.nodes[number];
            let stored = self.names.name(number).unwrap_or_default();
            if before == 0 && node.exact == rule {
                found = Some((Trigger::Name(stored.into()), node.exact_line));
            } else if before > 0 && node.below == rule {
                found = Some((Trigger::Below(stored.into()), node.below_line));
            }
        });
        found
    }
}

impl Trigger {
    /// Word for the kind of trigger.
    fn kind(&self) -> &'static str {
        match self {
            Trigger::Name(_) | Trigger::Below(_) => "name",
            Trigger::Address(_) => "address",
            Trigger::Client(_) => "client",
        }
    }
}

/// The trigger as an operator writes it: a name, `*.` and a name, or a network.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |f: &mut fmt::Formatter<'_>, name: &[u8]| match Name::from_wire(name) {
            Some(name) => write!(f, "{name}"),
            None => f.write_str("?"),
        };
        match self {
            Trigger::Name(exact) => name(f, exact),
            Trigger::Below(above) if **above == [0] => f.write_str("*."),
            Trigger::Below(above) => {
                f.write_str("*.")?;
                name(f, above)
            }
            Trigger::Address(network) | Trigger::Client(network) => write!(f, "{network}"),
        }
    }
}
