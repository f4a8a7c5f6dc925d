//! Parts of a plan: the programs that files are for, and the choice among them.

use crate::contradiction::Contradiction;
use crate::input::{Advertiser, Dhcpv4, Gateway, Input};

/// A program, or a part of the system, that files are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// radvd.
    Radvd,
    /// systemd-networkd.
    Networkd,
    /// BIRD.
    Bird,
    /// odhcpd.
    Odhcpd,
    /// Kea.
    Kea,
    /// dnsmasq.
    Dnsmasq,
    /// Jool.
    Jool,
    /// TAYGA.
    Tayga,
    /// nftables.
    Nftables,
    /// Settings of the kernel.
    Sysctl,
    /// Units of systemd.
    Units,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 11] = [
        Part::Radvd,
        Part::Networkd,
        Part::Bird,
        Part::Odhcpd,
        Part::Kea,
        Part::Dnsmasq,
        Part::Jool,
        Part::Tayga,
        Part::Nftables,
        Part::Sysctl,
        Part::Units,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Part::Radvd => "radvd",
            Part::Networkd => "networkd",
            Part::Bird => "bird",
            Part::Odhcpd => "odhcpd",
            Part::Kea => "kea",
            Part::Dnsmasq => "dnsmasq",
            Part::Jool => "jool",
            Part::Tayga => "tayga",
            Part::Nftables => "nftables",
            Part::Sysctl => "sysctl",
            Part::Units => "units",
        }
    }

    /// The contradiction that the part was chosen, and the network has no file for it.
    pub fn without_file(self) -> Contradiction {
        let what = format!("`--for` names {}, and this network needs no file for it", self.name());
        let remedy = "leave it out; the packet filter and the settings of the kernel need an interface with role = \
                      \"uplink\"";
        Contradiction { what, place: None, remedy: remedy.to_owned() }
    }

    fn advertiser(self) -> Option<Advertiser> {
        match self {
            Part::Radvd => Some(Advertiser::Radvd),
            Part::Networkd => Some(Advertiser::Networkd),
            Part::Bird => Some(Advertiser::Bird),
            Part::Odhcpd => Some(Advertiser::Odhcpd),
            _ => None,
        }
    }

    fn dhcpv4(self) -> Option<Dhcpv4> {
        match self {
            Part::Kea => Some(Dhcpv4::Kea),
            Part::Dnsmasq => Some(Dhcpv4::Dnsmasq),
            _ => None,
        }
    }

    fn gateway(self) -> Option<Gateway> {
        match self {
            Part::Jool => Some(Gateway::Jool),
            Part::Tayga => Some(Gateway::Tayga),
            _ => None,
        }
    }
}

/// The parts that files are written for. A program that is chosen takes the place of the one in the description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The parts. Empty: all that the description names.
    pub parts: Vec<Part>,
    /// Paths in the folder of files of earlier plans, which stay there: the page has them, too.
    pub kept: Vec<String>,
}

impl Choice {
    /// True if files are written for the part.
    pub fn has(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// The input with the chosen programs in the place of those of the description.
    ///
    /// # Errors
    ///
    /// Two programs of one kind are chosen.
    pub fn apply(&self, input: &Input) -> Result<Input, Vec<Contradiction>> {
        let (mut input, mut contradictions) = (input.clone(), Vec::new());
        let network = &mut input.network;
        let twice = &mut contradictions;
        self.only(Part::advertiser, "send router advertisements", &mut network.advertiser, twice);
        self.only(Part::dhcpv4, "serve DHCPv4", &mut network.dhcpv4, twice);
        self.only(Part::gateway, "are the gateway", &mut network.gateway, twice);
        if contradictions.is_empty() { Ok(input) } else { Err(contradictions) }
    }

    fn only<T>(
        &self,
        kind: impl Fn(Part) -> Option<T>,
        task: &str,
        value: &mut T,
        twice: &mut Vec<Contradiction>,
    ) {
        let chosen: Vec<Part> = self.parts.iter().copied().filter(|&part| kind(part).is_some()).collect();
        if let [first, second, ..] = chosen[..] {
            let what = format!("`--for` names {} and {}, which both {task}", first.name(), second.name());
            let remedy = "name one of them; for two machines run the command once for each, with two folders";
            twice.push(Contradiction { what, place: None, remedy: remedy.to_owned() });
        } else if let Some(only) = chosen.first().and_then(|&part| kind(part)) {
            *value = only;
        }
    }
}
