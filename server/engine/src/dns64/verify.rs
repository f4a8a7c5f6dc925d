//! Real AAAA records under a rule with `real-aaaa = "verify"`: those with dead addresses count as absent, and those that were not tried yet
//! are given for a short time only.

use crate::base::time::Instant;
use crate::dns64::config::{Dns64, is_excluded};
use crate::dns64::verdicts::{Fate, TRIED_AGAIN, Untried, fate};
use crate::message::cname_chain::Chain;
use core::net::Ipv6Addr;
use wire::{Message, Record, Section, Type};

/// Longest TTL in seconds of an answer with an address that was not tried: its client asks again soon after the verdict.
pub const UNTRIED_TTL_SECS: u32 = 30;

/// Longest TTL in seconds of an answer that a dead address has changed: the address may live again when it is tried next.
pub const DEAD_TTL_SECS: u32 = 60;

/// Addresses of one answer that are tried. More count as alive, so a zone with long answers cannot multiply the trials.
const TRIED_OF_ANSWER: usize = 16;

/// Use of the real AAAA records of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Usable {
    /// They count as they are.
    #[default]
    All,
    /// The dead ones are left out, and the others have at most this TTL in seconds.
    Living(u32),
    /// All are dead.
    None,
}

/// Judges the addresses at the end of the chain of a reply, and notes those that are to be tried. `name`: that of the client's question.
pub(crate) fn judge(
    (message, chain): (&Message<'_>, &Chain<'_>),
    dns64: &Dns64,
    name: &[u8],
    now: Instant,
    untried: &mut Untried,
) -> Usable {
    let verdicts = dns64.verdicts.as_deref();
    let (mut is_given, mut has_untried, mut has_dead) = (false, false, false);
    for (place, address) in real_addresses(message, chain, dns64).enumerate() {
        let fate = fate(address, verdicts, now);
        let is_tried = fate != Fate::Exempt && place < TRIED_OF_ANSWER;
        let is_due = || verdicts.and_then(|all| all.of(address)).is_none_or(|of| now - of.at >= TRIED_AGAIN);
        if is_tried && is_due() {
            untried.note(address, name);
        }
        is_given |= fate != Fate::Dead;
        has_dead |= fate == Fate::Dead;
        has_untried |= fate == Fate::Untried && is_tried;
    }
    match () {
        () if !is_given && has_dead => Usable::None,
        () if has_untried => Usable::Living(UNTRIED_TTL_SECS),
        () if has_dead => Usable::Living(DEAD_TTL_SECS),
        () => Usable::All,
    }
}

/// True if a reply has real AAAA records, and all are dead.
pub(crate) fn are_all_dead(message: &Message<'_>, chain: &Chain<'_>, dns64: &Dns64) -> bool {
    let mut addresses = real_addresses(message, chain, dns64).peekable();
    addresses.peek().is_some() && addresses.all(|address| is_dead(address, dns64))
}

/// True if a record at the end of a chain is given to no client under a rule that verifies: it is excluded, or its address is dead.
pub(crate) fn is_left_out(record: &Record<'_>, chain: &Chain<'_>, dns64: &Dns64) -> bool {
    chain.ends_in(record, Type::AAAA)
        && (is_excluded(record, Some(dns64))
            || record.address6().is_some_and(|address| is_dead(address.into(), dns64)))
}

fn is_dead(address: Ipv6Addr, dns64: &Dns64) -> bool {
    fate(address, dns64.verdicts.as_deref(), Instant(0)) == Fate::Dead
}

/// The addresses at the end of a chain that count as real.
fn real_addresses<'a>(
    message: &'a Message<'_>,
    chain: &'a Chain<'_>,
    dns64: &'a Dns64,
) -> impl Iterator<Item = Ipv6Addr> + 'a {
    let ends = message.records(Section::Answer).filter(|record| chain.ends_in(record, Type::AAAA));
    let real = ends.filter(|record| !is_excluded(record, Some(dns64)));
    real.filter_map(|record| record.address6().map(Ipv6Addr::from))
}
