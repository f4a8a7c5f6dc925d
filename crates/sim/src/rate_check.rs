//! Client questions on their way in, and answers on their way out, past the limits of their networks: what becomes of each is
//! known beforehand ([`crate::rates`]), from what the client has shown with its cookie ([`crate::cookie`]).

use crate::cookie::{CookieStatus, cookie_status};
use crate::outbox::instant;
use crate::policy::Action;
use crate::rates::{Bucket, Fate, network};
use crate::truth::{NameId, SECOND};
use crate::world::World;
use engine::{Counter, Engine, Machine};

/// Who sends messages that are nobody's question.
pub(crate) const NOBODY: u64 = u64::MAX;

/// What the engine does with a client's message before it looks what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// It takes it.
    Taken,
    /// It offers TCP instead.
    Slipped,
    /// It refuses it.
    Refused,
    /// It says nothing.
    Dropped,
    /// It says nothing, as a response policy wants it.
    Filtered,
}

impl World {
    /// Unix time, modulo 2^32.
    pub(crate) fn unix(&self, at: u64) -> u32 {
        self.unix_start.wrapping_add((at / SECOND) as u32)
    }

    /// Whether a client has shown with its cookie that it is where it seems to be.
    pub(crate) fn is_good(&self, client: u32, cookie: Option<&[u8]>) -> bool {
        let address = self.clients.address(client);
        let value = |data| cookie_status(data, address, &self.config().secrets, self.unix(self.now));
        cookie.is_some_and(|data| matches!(value(data), CookieStatus::Valid | CookieStatus::Current))
    }

    /// A client's message reaches the engine.
    pub(crate) fn submit(
        &mut self,
        client: u32,
        token: u64,
        tcp: bool,
        bytes: &[u8],
        cookie: Option<&[u8]>,
    ) -> Met {
        let counts = |engine: &Engine| {
            [
                Counter::SlippedQueryRate,
                Counter::RefusedQueryRate,
                Counter::DroppedQueryRate,
                Counter::FilteredDrop,
            ]
            .map(|counter| engine.counters().get(counter))
        };
        let expected = self.expect(client, token, tcp, bytes, cookie);
        let before = counts(&self.engine);
        let face = self.clients.face(client, token, tcp);
        self.engine.query(instant(self.now), &face, bytes, &mut self.outbox);
        let after = counts(&self.engine);
        let met = match [0, 1, 2, 3].map(|place| after[place] - before[place]) {
            [0, 0, 0, 0] => Met::Taken,
            [1, 0, 0, 0] => Met::Slipped,
            [0, 1, 0, 0] => Met::Refused,
            [0, 0, 0, 1] => Met::Filtered,
            _ => Met::Dropped,
        };
        // What cannot be read is dropped where a question slips.
        let is_alike = token == NOBODY && (met == Met::Taken) == (expected == Met::Taken);
        let may_be_filtered = expected == Met::Taken && met == Met::Filtered && self.is_filtered(token);
        if met != expected && !is_alike && !may_be_filtered {
            self.violate("I13", format!("#{token} of client {client} is {met:?}, not {expected:?}"));
        }
        met
    }

    /// Whether a response policy lets nobody answer a question: of a client of the first zone, so nothing goes before it but what
    /// the configuration says of the name.
    fn is_filtered(&self, token: u64) -> bool {
        let Some(pending) = self.pending.get(&token) else { return false };
        let (config, client) = (self.config(), self.clients.address(pending.client));
        let rule = config.policy.for_question(Some(client), pending.name);
        rule.is_some_and(|rule| rule.action == Action::Drop)
            && config.own.lookup(pending.name, pending.rtype).is_none()
    }

    fn expect(&mut self, client: u32, token: u64, tcp: bool, bytes: &[u8], cookie: Option<&[u8]>) -> Met {
        if bytes.len() < 12 || bytes[2] & 0x80 != 0 {
            return Met::Taken;
        }
        let (rate, now) = (self.config().queries, self.now);
        let network = network(self.clients.address(client));
        let mut proven = tcp;
        let mut fate = self.buckets.take(Bucket::Queries { network, proven }, rate, now);
        if fate != Fate::Within && !tcp && self.is_good(client, cookie) {
            proven = true;
            fate = self.buckets.take(Bucket::Queries { network, proven }, rate, now);
        }
        let is_allowed = !(self.clients.is_outside(client) && self.config().closed);
        match fate {
            Fate::Within => Met::Taken,
            _ if proven => Met::Refused,
            Fate::Slips if is_allowed && token != NOBODY => Met::Slipped,
            _ => Met::Dropped,
        }
    }

    /// An answer leaves over UDP for a client that has shown nothing. `question`: name and type. `may_be_cut`: what is said of the
    /// name may be too long for the client. Whether it is one that offers TCP because there were too many.
    pub(crate) fn meter(
        &mut self,
        client: u32,
        question: Option<(NameId, u16)>,
        bytes: &[u8],
        is_withheld: bool,
        may_be_cut: bool,
    ) -> Result<bool, (&'static str, String)> {
        let (rate, now) = (self.config().responses, self.now);
        let network = network(self.clients.address(client));
        let bucket = |rcode: u8| match question {
            Some((name, rtype)) if rcode == 0 => Bucket::Answers { network, name, rtype },
            _ => Bucket::Failures { network, rcode },
        };
        let rcode = bytes[3] & 15;
        let is_referral = bytes[2] & 2 != 0 && rcode == 0 && bytes[6..10] == [0; 4];
        if is_referral && !is_withheld && may_be_cut {
            // It may be the answer, which is too long, or stand for another one.
            self.buckets.lose_track(network, now);
        }
        if is_referral && !is_withheld {
            // It does not tell what it stands for.
            let slips = |rcode: &u8| {
                matches!(self.buckets.look(bucket(*rcode), rate, now), Fate::Slips | Fate::TooMuch)
            };
            let may_be: Vec<u8> = (0..16).filter(slips).collect();
            for &rcode in &may_be {
                self.buckets.note(bucket(rcode), Some(true).filter(|_| may_be.len() == 1));
            }
            if !may_be.is_empty() {
                return Ok(true);
            }
        }
        if self.configs.len() > 1 && self.now - self.jumped < self.reloaded + 3 * SECOND {
            // Under other limits something else was owed.
            self.buckets.lose_track(network, now);
        }
        let is_unsure = self.buckets.is_unsure(network, now);
        let fate = self.buckets.take(bucket(rcode), rate, now);
        match (fate, is_withheld) {
            _ if is_unsure => Ok(is_referral && !is_withheld),
            (Fate::Within, false) | (Fate::Beyond, true) => Ok(false),
            (Fate::TooMuch, true) => {
                self.buckets.note(bucket(rcode), Some(false));
                Ok(false)
            }
            _ => {
                let what = if is_withheld { "withheld" } else { "given" };
                Err((
                    "I13",
                    format!("an answer with RCODE {rcode} to client {client} is {what}, not {fate:?}"),
                ))
            }
        }
    }
}
