//! Demands on the configuration of a server, in terms that several servers have. A recipe writes them, or refuses those for which its
//! server has no option.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::Ipv6Addr;

/// A prefix and its length.
pub type Prefix = (Ipv6Addr, u8);

/// Demands on a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// DNS64 prefixes with their lengths, in order; none: no DNS64.
    pub prefixes: Vec<Prefix>,
    /// Networks whose AAAA records count as absent. `None`: the default of the server.
    pub exclude: Option<Vec<String>>,
    /// IPv4 networks with their own prefixes, or with none; the first match decides.
    pub mapped: Vec<Ipv4Mapping>,
    /// Clients that get synthesis. `None`: all.
    pub clients: Option<Vec<String>>,
    /// Suffix of a synthesized address, behind the IPv4 address.
    pub suffix: Option<Ipv6Addr>,
    /// No synthesis for queries without RD.
    pub recursive_only: bool,
    /// Synthesis even with DO and CD.
    pub break_dnssec: bool,
    /// Expired records may be served (RFC 8767).
    pub stale: bool,
    /// Names of special use are the server's own as far as the next two fields say, and in its defaults. If not, it asks for them like for
    /// all names.
    pub special_names: bool,
    /// The server answers `ipv4only.arpa` itself, without the upstream.
    pub ipv4only: bool,
    /// The server answers the reverse names of private addresses itself (RFC 6303).
    pub empty_zones: bool,
    /// The server must trust the AD bit of the upstream, and the case shows it.
    pub trust: bool,
    /// Networks of the clients that may ask. `None`: all.
    pub allow: Option<Vec<String>>,
    /// Records of the server's own, `OWNER TTL CLASS TYPE RDATA` each.
    pub records: Vec<String>,
    /// Names that do not exist for clients, with all names below them.
    pub block: Vec<String>,
    /// Response policy zones.
    pub policies: Vec<PolicyZone>,
}

/// Response policy zone in a file of the server's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyZone {
    /// Name of the zone, without the dot at its end: that of `$ORIGIN` in the file.
    pub name: String,
    /// Name of the file.
    pub file: String,
}

/// IPv4 networks and the prefixes that they are mapped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv4Mapping {
    /// IPv4 networks.
    pub ipv4: Vec<String>,
    /// Prefixes; none: addresses of these networks are left out.
    pub prefixes: Vec<Prefix>,
}

/// Kind of demands for which a server has no option, or its recipe no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Several prefixes.
    Prefixes,
    /// Prefixes of other lengths than 96.
    Lengths,
    /// AAAA networks that count as absent.
    Exclusion,
    /// AAAA networks that count as absent and are not all.
    PartialExclusion,
    /// Trust in the upstream: the server validates by itself, or nothing is validated.
    Trust,
    /// Options that only BIND has.
    OptionsOfBind,
    /// Settings of which some servers have one, but which the recipe of this one does not write.
    Translation,
}

/// Reason why a demand is refused: the server may have an option, but nothing here writes it.
pub fn no_translation(what: &str) -> String {
    format!("our template has no translation for {what}")
}

/// End of the name of a zone's file; the rest is the name of the zone.
pub(crate) const ZONE_FILE: &str = ".zone";

/// Policy zone made from a list of names, and its file.
const BLOCK_ZONE: &str = "block.invalid";
const BLOCK_FILE: &str = "block.rpz";

/// Head of a zone without records.
const ZONE_HEAD: &str =
    "$TTL 60\n@ 60 IN SOA localhost. nobody.invalid. 1 3600 1200 604800 60\n@ 60 IN NS localhost.\n";

impl Demands {
    /// The one prefix that most servers have.
    pub(crate) fn prefix(&self) -> Option<Prefix> {
        self.prefixes.first().copied()
    }

    /// True if all AAAA records count as absent.
    pub(crate) fn excludes_all_aaaa(&self) -> bool {
        self.exclude.as_deref().is_some_and(|networks| networks == ["::/0"])
    }

    /// Authoritative zones that have the records: each is the zone above its records. The keys are the names of the files.
    pub(crate) fn own_zones(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for record in &self.records {
            let owner = record.split_whitespace().next().unwrap_or_default().trim_end_matches('.');
            let zone = owner.split_once('.').map_or("", |(_, zone)| zone).to_ascii_lowercase();
            let head = || format!("$ORIGIN {zone}.\n{ZONE_HEAD}");
            let text: &mut String = files.entry(format!("{zone}{ZONE_FILE}")).or_insert_with(head);
            let _ = writeln!(text, "{record}");
        }
        files
    }

    /// Names and files of the policy zones; the one for blocked names is added to the files.
    pub(crate) fn policy_zones(&self, files: &mut BTreeMap<String, String>) -> Vec<(&str, &str)> {
        let zones = self.policies.iter().map(|zone| (zone.name.as_str(), zone.file.as_str()));
        let mut zones: Vec<(&str, &str)> = zones.collect();
        if !self.block.is_empty() {
            files.insert(BLOCK_FILE.to_owned(), self.block_policy());
            zones.push((BLOCK_ZONE, BLOCK_FILE));
        }
        zones
    }

    /// Policy zone under which the blocked names and all names below them do not exist.
    fn block_policy(&self) -> String {
        let names: BTreeSet<&String> = self.block.iter().collect();
        let rules = names.into_iter().map(|name| format!("{name} IN CNAME .\n*.{name} IN CNAME .\n"));
        format!("$ORIGIN {BLOCK_ZONE}.\n{ZONE_HEAD}{}", rules.collect::<String>())
    }

    /// Compares the demands with what a server lacks.
    ///
    /// # Errors
    ///
    /// The first demand that the server cannot meet, in words.
    pub fn check(&self, lacks: &[Lack]) -> Result<(), String> {
        for lack in lacks {
            let demanded = self.demanded(*lack).into_iter().find(|(is_demanded, _)| *is_demanded);
            match (lack, demanded) {
                (_, None) => {}
                (Lack::Translation, Some((_, key))) => return Err(no_translation(key)),
                (_, Some((_, what))) => return Err(format!("the server has no option for {what}")),
            }
        }
        Ok(())
    }

    /// Demands that a lack refuses: true for each that is made here, and its name.
    fn demanded(&self, lack: Lack) -> Vec<(bool, &'static str)> {
        const ABSENT: &str = "AAAA records that count as absent";
        match lack {
            Lack::Prefixes => vec![(self.prefixes.len() > 1, "several prefixes")],
            Lack::Lengths => {
                let is_other = self.prefix().is_some_and(|(_, length)| length != 96);
                vec![(is_other, "prefixes of other lengths than 96")]
            }
            Lack::Exclusion => vec![(self.exclude.is_some(), ABSENT)],
            Lack::PartialExclusion => vec![(self.exclude.is_some() && !self.excludes_all_aaaa(), ABSENT)],
            Lack::Trust => vec![(self.trust, "trust in the upstream's validation")],
            Lack::OptionsOfBind => vec![
                (!self.mapped.is_empty(), "prefixes by IPv4 network"),
                (self.clients.is_some(), "clients with and without synthesis"),
                (self.suffix.is_some(), "a suffix"),
                (self.recursive_only, "queries without RD"),
                (self.break_dnssec, "synthesis with DO and CD"),
            ],
            Lack::Translation => vec![
                (self.allow.is_some(), "server.allow"),
                (!self.records.is_empty(), "local.records"),
                (self.empty_zones, "local.empty-zones"),
                (!self.block.is_empty(), "filter.block"),
                (!self.policies.is_empty(), "filter.rpz"),
            ],
        }
    }
}
