//! Judgement of answers from the truth of the tree, record by record: what a secure zone has must be in it as the zone has or had it, what an
//! insecure one has may be forged, and nothing comes from a zone whose chain is broken.

use crate::keyed_worlds::names::{Name, ancestors, text};
use crate::keyed_worlds::tree::{A, AAAA, CNAME, Fate, RRSIG, Source, Tree, Trust};
use wire::{Flags, Message, Section};

/// Octets of the prefix of all syntheses, which has 96 bits.
pub(super) const PREFIX: [u8; 12] = [0x20, 1, 0x0d, 0xb8, 0, 0x64, 0, 0, 0, 0, 0, 0];

/// Seconds for which meddling may have effects: two failures of 60 s one after the other, and questions that take their time.
pub(super) const MEMORY_SECS: u64 = 150;

/// Most questions about zones for one query, verifications for one query, and verifications for one message.
const QUESTIONS: usize = 12;
const VERIFICATIONS: usize = 32;
const MESSAGE_VERIFICATIONS: usize = 16;

/// Query of a client.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) name: Name,
    pub(super) rtype: u16,
    pub(super) checking_disabled: bool,
    pub(super) dnssec_ok: bool,
    pub(super) wants_ad: bool,
}

/// What happened to the replies about a zone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meddling {
    /// Second of the last trick.
    pub(super) last: Option<u64>,
}

impl Meddling {
    fn is_recent(self, secs: u64) -> bool {
        self.last.is_some_and(|last| secs <= last + MEMORY_SECS)
    }
}

/// An answer's surroundings.
pub(super) struct Case<'c> {
    pub(super) tree: &'c Tree,
    pub(super) query: &'c Query,
    pub(super) secs: u64,
    /// By zone.
    pub(super) meddling: &'c [Meddling],
    /// True if verifications were late.
    pub(super) is_slow: bool,
}

/// Answer record.
struct Given {
    owner: Name,
    rtype: u16,
    ttl: u32,
    rdata: Vec<u8>,
}

/// What an answer says about a name.
struct Said<'s> {
    name: &'s [u8],
    data: Vec<&'s Given>,
    alias: Option<&'s Given>,
    /// The response code says that the last name does not exist.
    is_missing: bool,
    /// Replies about this name, or about one that leads to it, were meddled with.
    is_meddled: bool,
    /// A name that the forger decides about leads to this one, so it can lead elsewhere, and without AD deny whatever is there.
    is_led: bool,
    has_ad: bool,
}

/// What AD may be in an answer. Of several parts the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Grade {
    /// It must be there, if nothing was meddled with.
    Secure,
    /// The forger decides: it has the keys.
    Either,
    /// It must not be there.
    Insecure,
}

/// What an answer turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Failure,
    Secure,
    Other,
}

/// Names, zones and records on the way from a name to its data.
struct Path {
    /// Zones with their ancestors.
    zones: Vec<usize>,
    links: usize,
}

impl Case<'_> {
    /// Judges an answer.
    ///
    /// # Errors
    ///
    /// The broken invariant, and how it is broken.
    pub(super) fn judge(&self, octets: &[u8]) -> Result<Judged, String> {
        let message = Message::parse(octets).map_err(|error| format!("I2: {error:?}"))?;
        let has_ad = message.flags().contains(Flags::AD);
        let rcode = message.rcode().0;
        if message.qname().to_ascii_lowercase() != self.query.name || message.qtype().0 != self.query.rtype {
            return Err("I2: another question".to_owned());
        }
        if has_ad && !self.query.dnssec_ok && !self.query.wants_ad {
            return Err("V-a: AD for a client that cannot read it".to_owned());
        }
        match rcode {
            0 | 3 => {}
            _ if has_ad => return Err("V-a: AD on a failure".to_owned()),
            _ => return self.judge_failure(),
        }
        // The client checks by itself.
        if self.query.checking_disabled && !has_ad {
            return Ok(Judged::Other);
        }
        let is_address = |record: wire::Record<'_>| matches!(record.rtype.0, A | AAAA | CNAME);
        if has_ad && message.records(Section::Authority).any(is_address) {
            return Err("V-a: AD on an authority section with records that no zone put there".to_owned());
        }
        let records = read(&message)?;
        let grade = self.walk(&records, rcode == 3, has_ad)?;
        match (has_ad, grade) {
            (true, Grade::Insecure) => Err("V-a: AD on data that are not secure".to_owned()),
            (false, Grade::Secure) if self.query.dnssec_ok && !self.has_reason() => {
                Err("V-c: secure data without AD".to_owned())
            }
            (true, _) => Ok(Judged::Secure),
            _ => Ok(Judged::Other),
        }
    }

    /// Follows an answer from the question to its end.
    fn walk(&self, records: &[Given], is_missing: bool, has_ad: bool) -> Result<Grade, String> {
        let (mut at, mut grade, mut seen) = (self.query.name.clone(), Grade::Secure, vec![]);
        let mut is_meddled = false;
        loop {
            if seen.contains(&at) {
                return Err(format!("I5: a loop at {}", text(&at)));
            }
            let of =
                |rtype| records.iter().filter(|it| it.owner == at && it.rtype == rtype).collect::<Vec<_>>();
            let (data, alias) = (of(self.query.rtype), of(CNAME));
            // A reply about a name has the names behind its aliases, too.
            is_meddled |= self.meddling[self.tree.zone_of(&at, self.query.rtype)].last.is_some();
            let is_empty = data.is_empty();
            let is_led = is_meddled && grade != Grade::Secure;
            let said = Said {
                name: &at,
                data,
                alias: alias.first().copied(),
                is_missing,
                is_meddled,
                is_led,
                has_ad,
            };
            grade = grade.max(self.judge_name(&said)?);
            seen.push(at.clone());
            match (is_empty, alias.first()) {
                (true, Some(alias)) => at = alias.rdata.clone(),
                _ => break,
            }
        }
        let is_stray = |it: &&Given| matches!(it.rtype, A | AAAA | CNAME) && !seen.contains(&it.owner);
        match records.iter().find(is_stray) {
            Some(stray) => Err(format!("I5: {} is not in the chain", text(&stray.owner))),
            None => Ok(grade),
        }
    }

    /// Judges what an answer says about one name.
    fn judge_name(&self, said: &Said<'_>) -> Result<Grade, String> {
        let Said { name, ref data, alias, is_missing, is_meddled, is_led, has_ad } = *said;
        let (tree, rtype) = (self.tree, self.query.rtype);
        let zone = tree.zone_of(name, rtype);
        let (_, source) = tree.fate(zone, name, rtype, self.secs);
        let grade = match tree.zones[zone].trust {
            Trust::Bogus => {
                return Err(format!("V-b: data of {} in a zone whose chain is broken", text(name)));
            }
            Trust::Insecure => Grade::Insecure,
            Trust::Forger => Grade::Either,
            Trust::Secure if self.may_be_delegated(zone, &source) => Grade::Insecure,
            Trust::Secure => Grade::Secure,
        };
        // What nobody has meddled with is as its zone has it.
        if grade != Grade::Secure && is_meddled {
            return Ok(grade);
        }
        if let Some(given) = data.iter().chain(&alias).find(|given| given.ttl > tree.ttl) {
            return Err(format!(
                "V-a: a TTL of {} at {}, whose zone has {}",
                given.ttl,
                text(name),
                tree.ttl
            ));
        }
        let mut octets: Vec<&[u8]> = data.iter().map(|given| &given.rdata[..]).collect();
        octets.sort_unstable();
        let is_right = match (octets.is_empty(), alias) {
            (false, _) => {
                self.is_true(name, &octets) || rtype == AAAA && self.is_synthesis(name, &octets, is_led)
            }
            (true, Some(alias)) => {
                self.is_fate(name, rtype, |fate| *fate == Fate::Alias(alias.rdata.clone()))
            }
            (true, None) if is_led && !has_ad => true,
            (true, None) => {
                self.check_synthesis_is_missing(name)?;
                let denial = if is_missing { Fate::NoName } else { Fate::NoData };
                self.is_fate(name, rtype, |fate| *fate == denial)
            }
        };
        match is_right {
            true => Ok(grade),
            false => Err(format!(
                "V-b: {} in {}, which is {:?}, has {:?}, and the answer {octets:02x?}, alias {:?}, is missing: {is_missing}",
                text(name),
                text(&tree.zones[zone].apex),
                tree.zones[zone].trust,
                tree.fate(zone, name, rtype, self.secs).0,
                alias.map(|alias| text(&alias.rdata)),
            )),
        }
    }

    /// True if nothing proves that a name of a zone is not in an unsigned delegation.
    fn may_be_delegated(&self, zone: usize, source: &Source) -> bool {
        self.tree.zones[zone].opts_out() && matches!(source, Source::Wildcard(_) | Source::Nowhere(_))
    }

    /// True if one of the epochs that may be believed gives a name and a type this fate.
    fn is_fate(&self, name: &[u8], rtype: u16, is_it: impl Fn(&Fate) -> bool) -> bool {
        let zone = self.tree.zone_of(name, rtype);
        let mut epochs = self.tree.epochs(zone, self.secs);
        epochs.any(|epoch| is_it(&self.tree.fate(zone, name, rtype, self.tree.start(epoch)).0))
    }

    fn is_true(&self, name: &[u8], octets: &[&[u8]]) -> bool {
        self.is_fate(name, self.query.rtype, |fate| is_set(fate, octets, &[]))
    }

    /// True if the addresses follow from A records, and the name may be without AAAA records.
    fn is_synthesis(&self, name: &[u8], octets: &[&[u8]], is_led: bool) -> bool {
        (is_led || self.is_fate(name, AAAA, |fate| *fate == Fate::NoData))
            && self.is_fate(name, A, |fate| is_set(fate, octets, &PREFIX))
    }

    /// Without AAAA records, a name with A records has addresses.
    fn check_synthesis_is_missing(&self, name: &[u8]) -> Result<(), String> {
        let may_lack_a = || self.is_fate(name, A, |fate| !matches!(fate, Fate::Data(_)));
        if self.query.rtype == AAAA && !may_lack_a() && !self.has_reason() {
            return Err(format!("V-c: {} has A records, and no addresses were made of them", text(name)));
        }
        Ok(())
    }

    /// A failure has a reason.
    fn judge_failure(&self) -> Result<Judged, String> {
        let is_broken = |zone: &usize| self.tree.zones[*zone].trust == Trust::Bogus;
        let path = self.path();
        if path.zones.iter().any(is_broken) || self.has_reason() {
            return Ok(Judged::Failure);
        }
        Err(format!("V-c: SERVFAIL for {} without a reason", text(&self.query.name)))
    }

    /// True if something has happened that may spoil an answer, or if validation may cost too much.
    fn has_reason(&self) -> bool {
        let path = self.path();
        let is_meddled = |zone: &usize| {
            let meddling = self.meddling[*zone];
            // What is forged in an insecure zone is kept as long as the forger says, and so is all that Opt-Out leaves open.
            let data = &self.tree.zones[*zone];
            let may_last = data.trust != Trust::Secure || data.opts_out();
            meddling.is_recent(self.secs) || may_last && meddling.last.is_some()
        };
        let questions = 2 * path.zones.len();
        let of_message = 2 * path.links + 4;
        let verifications = 4 * path.zones.len() + 2 * of_message;
        self.is_slow
            || path.zones.iter().any(is_meddled)
            || questions > QUESTIONS
            || verifications > VERIFICATIONS
            || of_message > MESSAGE_VERIFICATIONS
    }

    fn path(&self) -> Path {
        let mut path = Path { zones: vec![], links: 0 };
        let mut at = self.query.name.clone();
        for _ in 0..20 {
            let zone = self.tree.zone_of(&at, self.query.rtype);
            let above = ancestors(&self.tree.zones[zone].apex);
            let zones = above.filter_map(|it| self.tree.zones.iter().position(|zone| zone.apex == it));
            for zone in zones.collect::<Vec<_>>() {
                if !path.zones.contains(&zone) {
                    path.zones.push(zone);
                }
            }
            path.links += 1;
            match self.tree.fate(zone, &at, self.query.rtype, self.secs).0 {
                Fate::Alias(target) => at = target,
                _ => break,
            }
        }
        path
    }
}

/// True if a fate is a set of records which, each behind a prefix, are these octets.
fn is_set(fate: &Fate, octets: &[&[u8]], prefix: &[u8]) -> bool {
    let Fate::Data(records) = fate else { return false };
    let mut expected: Vec<Vec<u8>> = records.iter().map(|record| [prefix, record].concat()).collect();
    expected.sort_unstable();
    expected == octets
}

fn read(message: &Message<'_>) -> Result<Vec<Given>, String> {
    let written = |name: &wire::Name<'_>| {
        let mut room = [0; wire::MAX_NAME];
        let length = name.write(&mut room);
        room[..length].to_ascii_lowercase()
    };
    let mut records = vec![];
    for record in message.records(Section::Answer) {
        let rdata = match record.rtype.0 {
            RRSIG => continue,
            CNAME => written(&record.target().ok_or("I2: an alias without target")?),
            _ => record.rdata().to_vec(),
        };
        records.push(Given { owner: written(&record.owner), rtype: record.rtype.0, ttl: record.ttl, rdata });
    }
    Ok(records)
}
