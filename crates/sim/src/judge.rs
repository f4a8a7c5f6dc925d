//! The judgement: what must hold of every answer, of every question upstream, at every step and at the end. The numbers of the
//! invariants are those of `docs/simulation.md`.

use crate::case::{Case, RpzState};
use crate::client_view::{self, Seen};
use crate::config::Config;
use crate::cookie::{CookieStatus, cookie_status, is_expected_cookie};
use crate::message::{MARK4, MARK6, QUESTION_OFFSET};
use crate::outbox::{SentAnswer, SentQuery, instant};
use crate::pending::Pending;
use crate::policy::Action;
use crate::rate_check::{Met, NOBODY};
use crate::timeline::Key;
use crate::truth::{A, AAAA, FIRST_ARPA_ID, Kind, MILLI, SECOND};
use crate::weather::SERVERS;
use crate::world::World;
use core::cell::Cell;
use engine::Counter;

/// An answer comes within this, or something is wrong: two legs, what is asked in doubt and the basis, of three tries of
/// half a second and one more over TCP.
pub(crate) const DEADLINE: u64 = 12 * SECOND;
/// The same for names that lead to others, each of which is asked for.
const DEADLINE_ALIAS: u64 = 9 * DEADLINE;

/// Cookies that are remembered.
const MAX_COOKIES: usize = 64;

impl World {
    /// I8: a question is not asked under two identities at a time. All tries of one have the same letters.
    pub(crate) fn judge_the_flight(&mut self, key: Key, asked: &SentQuery) {
        let now = self.now;
        let (jumped, noise) = (self.timeline.trouble, self.timeline.noise);
        let letters = crate::message::question_section(&asked.bytes).to_vec();
        let track = self.timeline.track_mut(key);
        let twin = match &track.asked {
            Some((before, at)) if *before != letters => {
                // Nothing came for the other one, and it cannot have been given up yet.
                let untouched = track.touched.max(noise) < *at && jumped.is_none_or(|trouble| trouble < *at);
                untouched && now < at + 45 * MILLI && track.trouble.is_none_or(|trouble| trouble < *at)
            }
            _ => false,
        };
        track.asked = Some((letters, now));
        if twin {
            self.violate("I8", format!("{key:?} is asked twice at a time"));
        }
    }

    pub(crate) fn refused(&self) -> u64 {
        let counters = self.engine.counters();
        counters.get(Counter::RefusedPending) + counters.get(Counter::RefusedPendingPerClient)
    }

    /// An answer reaches a client.
    pub(crate) fn judge(&mut self, answered: &SentAnswer) {
        let SentAnswer { to, bytes, is_withheld } = answered;
        let (token, is_withheld) = (to.stream, *is_withheld);
        let curbed = self.curbed.filter(|curbed| curbed.0 == token).map(|curbed| curbed.1);
        if token == NOBODY {
            if curbed.is_none()
                && let Err((invariant, what)) = self.meter(0, None, bytes, is_withheld, false)
            {
                self.violate(invariant, what);
            }
            self.unanswered -= u64::from(!is_withheld);
            return;
        }
        let is_first = self.pending.contains_key(&token);
        let Some(mut pending) = self.pending.remove(&token).or_else(|| self.over.remove(&token)) else {
            return self.violate("I1", format!("#{token} has too many answers"));
        };
        pending.answered += 1;
        if *to != self.clients.face(pending.client, token, pending.tcp) {
            self.violate("I2", format!("#{token} is answered to {to:?}"));
        }
        let mut is_referral = curbed == Some(Met::Slipped);
        if curbed.is_none() && !pending.tcp && !pending.is_proven {
            let question = Some((pending.name, pending.rtype));
            let kind = self.truth.name(pending.name).kind;
            let own_size = self.configs[pending.generation..].iter().map(|config| config.udp_size).min();
            let may_be_cut = pending.edns.is_none_or(|edns| edns.0.min(own_size.unwrap_or(0)) < 1232)
                || !self.config().policy.is_empty()
                || matches!(kind, Kind::Many | Kind::Alias(_) | Kind::Loose(_));
            match self.meter(pending.client, question, bytes, is_withheld, may_be_cut) {
                Ok(is_slip) => is_referral = is_slip,
                Err((invariant, what)) => self.violate(invariant, what),
            }
        }
        if is_withheld {
            if pending.sent > 1 {
                self.over.insert(token, pending);
            }
            return;
        }
        self.unanswered = self.unanswered.wrapping_sub(1);
        if pending.answered > pending.sent {
            return self.violate(
                "I1",
                format!("#{token} has {} answers to {} messages", pending.answered, pending.sent),
            );
        }
        let waited = self.now - self.jumped - pending.awake;
        if is_first && waited > self.patience(&pending) {
            self.violate("I1", format!("#{token} waited {} ms", waited / MILLI));
        }
        let is_refused = curbed == Some(Met::Refused);
        if let Err((invariant, what)) = self.check(&pending, bytes, is_referral, is_refused) {
            let kind = self.truth.name(pending.name).kind;
            let what = format!("#{token} {kind:?} type {} {:?}: {what}", pending.rtype, pending.bits);
            self.violate(invariant, what);
        }
        self.tally.judged += 1;
        if pending.sent > 1 {
            self.over.insert(token, pending);
        }
    }

    fn patience(&self, pending: &Pending) -> u64 {
        match self.truth.name(pending.name).kind {
            Kind::Alias(_) | Kind::Loose(_) | Kind::Loop(_) => DEADLINE_ALIAS,
            _ => DEADLINE,
        }
    }

    /// `is_referral`, `is_refused`: the client has asked too often, and gets nothing but TC or REFUSED.
    fn check(
        &mut self,
        pending: &Pending,
        bytes: &[u8],
        is_referral: bool,
        is_refused: bool,
    ) -> Result<(), (&'static str, String)> {
        let question = QUESTION_OFFSET..QUESTION_OFFSET + pending.question.len();
        if bytes.get(..2) != Some(&pending.id.to_be_bytes())
            || bytes.get(question) != Some(&pending.question[..])
        {
            return Err(("I2", format!("ID or question differ: {bytes:02x?}")));
        }
        let seen = client_view::parse_answer(&self.truth, bytes, pending.question.len())
            .map_err(|error| ("I2", format!("{error}: {bytes:02x?}")))?;
        self.trace(|_| format!("answer {seen:?}"));
        // The size in force when it was asked or when it was answered.
        let own = || self.configs[pending.generation..].iter().map(|config| config.udp_size);
        let limit = |own: Option<u16>| match (pending.tcp, pending.edns) {
            (true, _) => 65_535,
            (false, None) => 512,
            (false, Some((size, _))) => usize::from(size.max(512).min(own.unwrap_or(512))),
        };
        let (least, limit) = (limit(own().min()), limit(own().max()));
        if bytes.len() > limit {
            return Err(("I2", format!("{} octets for a client that takes {limit}", bytes.len())));
        }
        // QR, RD, RA, CD as they must be; AA and Z clear.
        let wanted = 0x8080 | pending.flags & 0x0110;
        // RFC 8880 section 7.1 (4): here we are the authority, unless an alias led there.
        let may_be_authority = pending.name >= FIRST_ARPA_ID && seen.edges.len() <= 1;
        let authority = if may_be_authority { seen.flags & 0x0400 } else { 0 };
        if seen.flags & 0xfdd0 != wanted | authority {
            return Err(("I2", format!("flags {:04x}, not {wanted:04x}", seen.flags)));
        }
        if seen.opt.map(|opt| opt.1) != pending.edns.map(|edns| edns.1) {
            return Err(("I2", format!("OPT {:?} to {:?}", seen.opt, pending.edns)));
        }
        let got = seen.cookie.clone();
        if !self.has_right_cookie(pending, &seen) {
            return Err(("I14", format!("cookie {got:02x?} to {:02x?}", pending.cookie)));
        }
        if let Some(cookie) = got {
            self.received_cookies.push((pending.client, cookie));
            if self.received_cookies.len() > MAX_COOKIES {
                self.received_cookies.remove(0);
            }
        }
        let is_empty = bytes[6..10] == [0; 4];
        if is_referral || is_refused {
            let wanted = if is_referral { (true, 0) } else { (false, 5) };
            return match is_empty && (seen.is_truncated(), seen.rcode()) == wanted {
                true => Ok(()),
                false => Err(("I13", format!("{seen:?} to who asks too often"))),
            };
        }
        let own = |owner: u32| owner != client_view::UNKNOWN_NAME;
        let marked = seen.v4.iter().any(|record| record.2[..3] == MARK4)
            || seen
                .v6
                .iter()
                .any(|record| record.2[..6] == MARK6 || record.2.windows(3).any(|part| part == MARK4));
        if marked {
            return Err(("I7", format!("a forged address or one off the chain: {seen:?}")));
        }
        if !seen.edges.iter().all(|edge| own(edge.0) && own(edge.1)) || seen.others > 0 {
            return Err(("I5", format!("a record off the chain: {seen:?}")));
        }
        if pending.rtype == AAAA && !seen.v6.is_empty() {
            self.tally.synthesized +=
                u64::from(seen.v6.iter().all(|record| record.2[..6] != [0x20, 1, 0xd, 0xb8, 0, 6]));
        }
        self.tally.failed += u64::from(seen.rcode() == 2);
        self.compare(pending, &seen, least)
    }

    /// Whether the cookie of an answer is what the question's asks for.
    fn has_right_cookie(&self, pending: &Pending, seen: &Seen) -> bool {
        let address = self.clients.address(pending.client);
        let (asked, now) = (self.unix(pending.at), self.unix(self.now));
        let fits = |config: &Config| match &pending.cookie {
            Some(brought) if !config.secrets.is_empty() => match &seen.cookie {
                // Nothing else is answered then.
                None => cookie_status(brought, address, &config.secrets, now) == CookieStatus::Malformed,
                Some(got) => is_expected_cookie(brought, got, address, &config.secrets, asked, now),
            },
            _ => seen.cookie.is_none(),
        };
        self.met_by(pending).iter().any(fits)
    }

    /// The configurations that may have met a question.
    fn met_by(&self, pending: &Pending) -> &[Config] {
        let configs = &self.configs[pending.generation..];
        if pending.sent > 1 { configs } else { &configs[..1] }
    }

    /// The oracle's word.
    fn compare(&self, pending: &Pending, seen: &Seen, limit: usize) -> Result<(), (&'static str, String)> {
        let configs = &self.configs[pending.generation..];
        let is_outside = self.clients.is_outside(pending.client);
        let empty = seen.v4.is_empty() && seen.v6.is_empty() && seen.edges.is_empty();
        let mut first = if pending.sent > 1 { configs } else { &configs[..1] }.iter();
        if is_outside && first.clone().any(|config| config.closed) {
            let fits = seen.rcode() == 5 && empty || !first.all(|config| config.closed);
            return if fits {
                Ok(())
            } else {
                Err(("I4", format!("a client that is not allowed got {seen:?}")))
            };
        }
        // RFC 7873 section 5.2.2.
        let is_malformed = |config: &Config| {
            let worth_of = |data: &Vec<u8>| {
                cookie_status(data, self.clients.address(pending.client), &config.secrets, 0)
                    == CookieStatus::Malformed
            };
            !config.secrets.is_empty() && pending.cookie.as_ref().is_some_and(worth_of)
        };
        if seen.rcode() == 1 && empty && self.met_by(pending).iter().any(is_malformed) {
            return Ok(());
        }
        if self.met_by(pending).iter().all(is_malformed) {
            return Err(("I14", format!("a malformed cookie is answered {seen:?}")));
        }
        if seen.rcode() == 5 && empty && self.refused() > pending.refused {
            return Ok(());
        }
        // Which of several answers a referral stands for is not always known: it may be one that is too much.
        let has_limits = configs.iter().any(|config| config.responses > 0);
        if has_limits && seen.is_truncated() && seen.rcode() == 0 && empty && !pending.tcp {
            return Ok(());
        }
        // Which rule of one configuration becomes which of another is nothing to rely on.
        if configs.len() > 1 && configs.iter().any(|config| !config.policy.is_empty()) {
            return Ok(());
        }
        let case = Case {
            timeline: &self.timeline,
            configs,
            query: pending,
            answer: seen,
            now: self.now,
            limit,
            is_v4: self.clients.is_v4(pending.client),
            client: self.clients.address(pending.client),
            rpz: Cell::new(RpzState::Undecided),
            is_ipv4only: self.truth.name(pending.name).kind == Kind::Ipv4Only,
        };
        if case.is_allowed() {
            return Ok(());
        }
        Err((
            "I3-I6",
            format!(
                "not an allowed answer: {seen:?}; heard AAAA {:?}; A {:?}; now {}; asked at {}",
                self.timeline.get(Key { name: pending.name, rtype: AAAA, bits: pending.bits }),
                self.timeline.get(Key { name: pending.name, rtype: A, bits: pending.bits }),
                self.now,
                pending.at
            ),
        ))
    }

    /// I9: bounds.
    pub(crate) fn judge_the_figures(&mut self) {
        let config = self.config();
        let (octets, _) = self.engine.cached();
        let (pending, flights, links) =
            (self.engine.pending(), self.engine.flights(), self.engine.open_links());
        let too_much = octets > config.cache
            || pending > config.pending
            || flights > 2 * config.pending + 512
            || links > engine::limits::LINKS
            || links != self.outbox.links.len();
        if too_much {
            let open = self.outbox.links.len();
            self.violate(
                "I9",
                format!(
                    "{octets} octets kept, {pending} pending, {flights} flights, {links} links, {open} open"
                ),
            );
        }
    }

    /// Whether a response policy that came while a question waited lets nobody answer it.
    fn may_be_dropped(&self, pending: &Pending) -> bool {
        let client = Some(self.clients.address(pending.client));
        self.configs[pending.generation..].iter().skip(1).any(|config| {
            let rule = config.policy.for_question(client, pending.name);
            rule.is_some_and(|rule| rule.action == Action::Drop)
        })
    }

    /// What must hold when everything is over.
    pub(crate) fn judge_the_end(&mut self) {
        // I11 and I12: every message was answered, dropped for a counted reason, or waits.
        let counters = self.engine.counters();
        let family = |wanted: &str| -> u64 {
            Counter::ALL
                .iter()
                .filter(|counter| counter.describe().0 == wanted)
                .map(|&counter| counters.get(counter))
                .sum()
        };
        let overdue = counters.get(Counter::DroppedOverdue);
        let dropped: u64 = [
            Counter::DroppedRunt,
            Counter::DroppedResponse,
            Counter::DroppedRepeated,
            Counter::DroppedOverdue,
            Counter::DroppedQueryRate,
            Counter::DroppedResponseRate,
            Counter::FilteredDrop,
        ]
        .map(|counter| counters.get(counter))
        .iter()
        .sum();
        let (queries, answered) = (family("queries_total"), family("responses_total"));
        let refused = family("refused_total");
        let pending = self.engine.pending() as u64;
        if queries != self.tally.queries
            || queries != answered + dropped + pending
            || self.unanswered != dropped + pending
        {
            let (sent, open) = (self.tally.queries, self.unanswered);
            self.violate("I11", format!("{sent} sent, {queries} counted, {answered} answered, {dropped} dropped, {refused} refused, {pending} pending, {open} open"));
        }
        // What became ready too late was not sent over UDP, and counted.
        let is_lost = |pending: &Pending| pending.answered == 0 && !self.may_be_dropped(pending);
        let mut lost = self.pending.iter().filter(|(_, pending)| is_lost(pending));
        let over_tcp = lost.clone().find(|(_, pending)| pending.tcp);
        if let Some((token, lost)) = over_tcp.or_else(|| lost.nth(overdue as usize)) {
            let what = format!("#{token} has no answer: {lost:?}");
            self.violate("I1", what);
        }
        if self.engine.pending() > 0 || self.engine.flights() > 0 {
            let (pending, flights) = (self.engine.pending(), self.engine.flights());
            self.violate("I1", format!("{pending} pending and {flights} flights at the end"));
        }
        // I9: one link for each transport of each server stays.
        let links = self.engine.open_links();
        if links > 2 * SERVERS {
            self.violate("I9", format!("{links} links at the end"));
        }
        // I7: nothing forged is kept.
        for name in 0..self.truth.names.len() {
            let kept = self.engine.kept(&self.truth.names[name].wire, None, instant(self.now));
            for message in kept.iter().filter_map(|kept| kept.message.as_ref()) {
                let has = |mark: &[u8]| message.windows(mark.len()).any(|part| part == mark);
                if has(&[0, 4, MARK4[0], MARK4[1], MARK4[2]]) || has(&MARK6) {
                    self.violate("I7", format!("forged data of name {name} are kept"));
                }
            }
            if self.truth.names.len() > 300 && name > 300 {
                break;
            }
        }
        let figures = &self.outbox.figures;
        let many = figures.questions > 2000;
        let is_counting = many && figures.next_ids * 100 > figures.questions;
        let is_flat = figures.letters > 5000 && !(3..=7).contains(&(figures.capitals * 10 / figures.letters));
        let is_near = figures.links > 50 && figures.near_ports * 10 > figures.links;
        if is_counting || is_flat || is_near {
            self.violate("I10", format!("IDs, letters or ports can be guessed: {figures:?}"));
        }
    }
}
