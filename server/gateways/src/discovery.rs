//! Discovery of prefixes: which sources have told of which prefixes, for how long, and when the upstreams are to be asked again.
//!
//! The upstreams are asked for `ipv4only.arpa` (RFC 7050). What they answer counts until they answer something else: a caching upstream
//! counts its TTL down to the end, so the end of a TTL is the time to ask again, and no reason to forget the prefix. While they cannot be
//! asked, it is used for an hour more. Routers announce prefixes with a lifetime (RFC 8781), each for itself, and may withdraw them.

use crate::limits::{
    ADVERTISED_TTL_SECS, ANNOUNCEMENTS, LEAD, LONGEST_NEGATIVE, LONGEST_RETRY, LONGEST_TTL_SECS, OVERTIME,
    PREFIXES, QUESTION_TIMEOUT, SHORTEST_PAUSE,
};
use crate::pref64_option::Announced;
use crate::told::Told;
use core::fmt;
use engine::{Instant, Span};
use pref64::Pref64;
use std::collections::VecDeque;
use std::net::Ipv6Addr;

/// A source of prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The default forwarders.
    Upstream,
    /// The routers on the link of the interface with this name.
    Interface(Box<str>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Upstream => f.write_str("discover:upstream"),
            Source::Interface(name) => write!(f, "discover:{name}"),
        }
    }
}

/// Somebody who told of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcer {
    /// The upstreams.
    Upstream,
    /// The router with this address, on the link of the interface with this name.
    Router(Ipv6Addr, Box<str>),
}

impl fmt::Display for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Announcer::Upstream => f.write_str("the upstream"),
            Announcer::Router(address, interface) => write!(f, "{address}%{interface}"),
        }
    }
}

/// What is known of one prefix from one announcer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The prefix.
    pub prefix: Pref64,
    /// Who told of it.
    pub from: Announcer,
    /// Time at which it was told first.
    pub since: Instant,
    /// End of its TTL or lifetime.
    pub until: Instant,
}

/// Reason why an upstream tells of no prefix that could be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It answers, and has none.
    Nothing,
    /// It does not answer, or with a failure.
    Failure,
    /// The question came back to this server.
    Loop,
    /// It has only prefixes of this server's own configuration.
    Configured,
}

/// News for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A prefix was found that no source had.
    Found(Pref64, Announcer),
    /// A prefix is gone: no source has it any more. The last one that had it.
    Lost(Pref64, Announcer),
    /// The upstream has this trouble from now on.
    Upstream(Trouble),
    /// An interface does not exist, so no router on its link can be heard.
    Missing(Box<str>),
    /// It exists now.
    Exists(Box<str>),
}

/// A source, and what it has told.
struct Watched {
    source: Source,
    /// In the order in which the prefixes were found.
    announcements: Vec<Announcement>,
    /// For an interface: true if it exists; none: not known yet.
    exists: Option<bool>,
}

/// The questions to the upstreams.
#[derive(Default)]
struct Questions {
    /// Time of the next one.
    next: Instant,
    /// Time at which the one under way began.
    under_way: Option<Instant>,
    /// Failures in a row.
    failures: u32,
    trouble: Option<Trouble>,
}

/// All sources.
#[derive(Default)]
pub struct Discovery {
    watched: Vec<Watched>,
    /// The prefixes of the configuration.
    configured: Vec<Pref64>,
    questions: Questions,
    news: VecDeque<News>,
    /// Counts whatever changes the prefixes, or the TTL with which clients learn of them.
    version: u64,
    ttl_secs: u32,
}

impl Discovery {
    /// Watches these sources from now on. One that was watched before keeps what it has told. `configured`: the prefixes that the
    /// configuration has, whoever tells of them.
    pub fn configure(&mut self, now: Instant, sources: Vec<Source>, configured: Vec<Pref64>) {
        let mut former = std::mem::take(&mut self.watched);
        for source in sources {
            let known = former.iter().position(|one| one.source == source);
            let new = || Watched { source, announcements: Vec::new(), exists: None };
            self.watched.push(known.map_or_else(new, |place| former.swap_remove(place)));
        }
        // What they had is no news: the operator has taken them away.
        let is_upstream = |one: &Watched| one.source == Source::Upstream;
        if !self.watched.iter().any(is_upstream) || former.iter().any(is_upstream) {
            self.questions = Questions::default();
        }
        let is_own = |prefix: &Pref64| configured.iter().any(|own| is_same(own, prefix));
        for one in &mut self.watched {
            one.announcements.retain(|announcement| !is_own(&announcement.prefix));
        }
        self.configured = configured;
        self.questions.next = self.questions.next.min(now);
        self.version += 1;
        self.note_ttl(now);
    }

    /// True if there are sources.
    pub fn has_sources(&self) -> bool {
        !self.watched.is_empty()
    }

    /// The sources in the order of the configuration.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.watched.iter().map(|one| &one.source)
    }

    /// The interfaces whose routers are sources.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.sources().filter_map(|source| match source {
            Source::Interface(name) => Some(&**name),
            Source::Upstream => None,
        })
    }

    /// The prefixes that a source has told of, each once: the first ones, if there are many.
    pub fn found(&self, source: &Source) -> Vec<Pref64> {
        let mut found: Vec<Pref64> = Vec::new();
        let of_source = self.watched.iter().filter(|one| one.source == *source);
        for announcement in of_source.flat_map(|one| &one.announcements) {
            if found.len() < PREFIXES && !found.iter().any(|known| is_same(known, &announcement.prefix)) {
                found.push(announcement.prefix);
            }
        }
        found
    }

    /// All announcements.
    pub fn announcements(&self) -> impl Iterator<Item = &Announcement> {
        self.watched.iter().flat_map(|one| &one.announcements)
    }

    /// The trouble with the upstream, if it is a source and has some.
    pub fn trouble(&self) -> Option<Trouble> {
        self.questions.trouble
    }

    /// True if an interface is missing.
    pub fn is_missing(&self, interface: &str) -> bool {
        self.watched.iter().any(|one| one.is_interface(interface) && one.exists == Some(false))
    }

    /// True if a router on the link of an interface has announced a prefix that counts still.
    pub fn has_heard(&self, interface: &str) -> bool {
        self.watched.iter().any(|one| one.is_interface(interface) && !one.announcements.is_empty())
    }

    /// A number that grows with each change of the prefixes or of the TTL.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// TTL with which clients learn of the prefixes, in seconds: the shortest of those that were told, within bounds.
    pub fn ttl_secs(&self) -> u32 {
        self.ttl_secs.clamp(*ADVERTISED_TTL_SECS.start(), *ADVERTISED_TTL_SECS.end())
    }

    /// Takes over what another process knew.
    pub fn restore(&mut self, now: Instant, known: Announcement) {
        let is_source = |one: &&mut Watched| match &known.from {
            Announcer::Upstream => one.source == Source::Upstream,
            Announcer::Router(_, interface) => one.is_interface(interface),
        };
        if let Some(one) = self.watched.iter_mut().find(is_source)
            && !self.configured.iter().any(|own| is_same(own, &known.prefix))
            && one.announcements.len() < ANNOUNCEMENTS
        {
            one.announcements.push(known);
            self.version += 1;
            self.note_ttl(now);
        }
    }

    /// True if the upstreams are to be asked now. The caller then tells what they answer.
    pub fn take_question(&mut self, now: Instant) -> bool {
        let has_upstream = self.watched.iter().any(|one| one.source == Source::Upstream);
        let is_due = has_upstream && self.questions.under_way.is_none() && self.questions.next <= now;
        if is_due {
            self.questions.under_way = Some(now);
        }
        is_due
    }

    /// The upstreams have answered, or failed to. `has_looped`: the question came back to this server, so that what they tell is its own
    /// word.
    pub fn answered(&mut self, now: Instant, told: Told, has_looped: bool) {
        if self.questions.under_way.take().is_none() {
            return;
        }
        let (prefixes, trouble, pause) = match told {
            _ if has_looped => (Some((Vec::new(), 0)), Some(Trouble::Loop), LONGEST_NEGATIVE),
            Told::Prefixes(mut prefixes, ttl_secs) => {
                prefixes.retain(|prefix| !self.configured.iter().any(|own| is_same(own, prefix)));
                let ttl_secs = ttl_secs.min(LONGEST_TTL_SECS);
                let ttl = Span::from_secs(u64::from(ttl_secs));
                let pause = Span((ttl.0.saturating_sub(LEAD.0)).max(ttl.0 / 2)).max(SHORTEST_PAUSE);
                let trouble = prefixes.is_empty().then_some(Trouble::Configured);
                (Some((prefixes, ttl_secs)), trouble, pause)
            }
            Told::Nothing(ttl_secs) => {
                let pause = Span::from_secs(u64::from(ttl_secs)).clamp(SHORTEST_PAUSE, LONGEST_NEGATIVE);
                (Some((Vec::new(), 0)), Some(Trouble::Nothing), pause)
            }
            Told::Failure => {
                let doubled = SHORTEST_PAUSE.0 << self.questions.failures.min(6);
                (None, Some(Trouble::Failure), Span(doubled.min(LONGEST_RETRY.0)))
            }
        };
        self.questions.failures =
            if prefixes.is_some() { 0 } else { self.questions.failures.saturating_add(1) };
        self.questions.next = now + pause;
        if let Some((prefixes, ttl_secs)) = prefixes {
            self.replace_upstream(now, &prefixes, Span::from_secs(u64::from(ttl_secs)));
        }
        if let Some(trouble) = trouble.filter(|_| trouble != self.questions.trouble) {
            self.news.push_back(News::Upstream(trouble));
        }
        self.questions.trouble = trouble;
    }

    /// Replaces what the upstreams have told. Prefixes that they still have keep their order.
    fn replace_upstream(&mut self, now: Instant, prefixes: &[Pref64], ttl: Span) {
        let until = now + ttl;
        self.change(now, |watched| {
            let Some(one) = watched.iter_mut().find(|one| one.source == Source::Upstream) else { return };
            one.announcements.retain_mut(|known| {
                known.until = until;
                prefixes.contains(&known.prefix)
            });
            for prefix in prefixes {
                if !one.announcements.iter().any(|known| known.prefix == *prefix) {
                    let from = Announcer::Upstream;
                    one.announcements.push(Announcement { prefix: *prefix, from, since: now, until });
                }
            }
        });
    }

    /// A router on the link of an interface has announced these prefixes.
    pub fn announced(&mut self, now: Instant, interface: &str, router: Ipv6Addr, all: &[Announced]) {
        let from = Announcer::Router(router, interface.into());
        let configured = self.configured.clone();
        self.change(now, |watched| {
            let Some(one) = watched.iter_mut().find(|one| one.is_interface(interface)) else { return };
            for &Announced { prefix, lifetime } in all {
                let until = now + lifetime;
                let is_this = |known: &Announcement| known.prefix == prefix && known.from == from;
                let has_room = one.announcements.len() < ANNOUNCEMENTS;
                match one.announcements.iter_mut().find(|known| is_this(known)) {
                    Some(known) => known.until = until,
                    None if has_room && !configured.iter().any(|own| is_same(own, &prefix)) => {
                        one.announcements.push(Announcement {
                            prefix,
                            from: from.clone(),
                            since: now,
                            until,
                        });
                    }
                    None => {}
                }
                one.announcements.retain(|known| !is_this(known) || known.until > now);
            }
        });
    }

    /// Notes that an interface exists, or does not: what its routers announced is gone then.
    pub fn note_interface(&mut self, now: Instant, interface: &str, exists: bool) {
        let mut news = None;
        self.change(now, |watched| {
            let Some(one) = watched.iter_mut().find(|one| one.is_interface(interface)) else { return };
            match one.exists.replace(exists) {
                before if before == Some(exists) => return,
                None if exists => {}
                _ if exists => news = Some(News::Exists(interface.into())),
                _ => news = Some(News::Missing(interface.into())),
            }
            if !exists {
                one.announcements.clear();
            }
        });
        self.news.extend(news);
    }

    /// Handles the time up to now: lifetimes that are over, and a question that nobody answers.
    pub fn expire(&mut self, now: Instant) {
        if self.questions.under_way.is_some_and(|began| now - began >= QUESTION_TIMEOUT) {
            self.answered(now, Told::Failure, false);
        }
        if self.announcements().any(|one| one.end() <= now) {
            self.change(now, |watched| {
                watched.iter_mut().for_each(|one| one.announcements.retain(|known| known.end() > now));
            });
        }
    }

    /// Next time at which something is to be done; none: nothing is.
    pub fn next(&self) -> Option<Instant> {
        let has_upstream = self.watched.iter().any(|one| one.source == Source::Upstream);
        let question = match self.questions.under_way {
            Some(began) => began + QUESTION_TIMEOUT,
            None => self.questions.next,
        };
        self.announcements().map(Announcement::end).chain(has_upstream.then_some(question)).min()
    }

    /// The next news that was not taken yet.
    pub fn take_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// Changes what was told, and notes the difference.
    fn change(&mut self, now: Instant, change: impl FnOnce(&mut [Watched])) {
        let before: Vec<Announcement> = self.announcements().cloned().collect();
        change(&mut self.watched);
        let has = |all: &[Announcement], prefix: &Pref64| all.iter().any(|one| is_same(&one.prefix, prefix));
        let after: Vec<Announcement> = self.announcements().cloned().collect();
        let mut news: Vec<News> = Vec::new();
        let differ = |from: &[Announcement], to: &[Announcement], news: &mut Vec<News>, is_new: bool| {
            for (place, one) in from.iter().enumerate() {
                if !has(to, &one.prefix) && !has(&from[..place], &one.prefix) {
                    let (prefix, from) = (one.prefix, one.from.clone());
                    news.push(if is_new { News::Found(prefix, from) } else { News::Lost(prefix, from) });
                }
            }
        };
        differ(&before, &after, &mut news, false);
        differ(&after, &before, &mut news, true);
        self.news.extend(news);
        let prefixes = |all: &[Announcement]| all.iter().map(|one| one.prefix).collect::<Vec<_>>();
        self.version += u64::from(prefixes(&before) != prefixes(&after));
        self.note_ttl(now);
    }

    /// Notes the shortest TTL of what was told.
    fn note_ttl(&mut self, now: Instant) {
        let left =
            |one: &Announcement| (one.until - now).0.div_ceil(1_000_000_000).min(u64::from(u32::MAX)) as u32;
        let before = self.ttl_secs();
        self.ttl_secs = self.announcements().map(left).min().unwrap_or(u32::MAX);
        self.version += u64::from(self.ttl_secs() != before);
    }
}

impl Watched {
    fn is_interface(&self, name: &str) -> bool {
        matches!(&self.source, Source::Interface(own) if **own == *name)
    }
}

impl Announcement {
    /// Time from which the prefix is no longer used.
    fn end(&self) -> Instant {
        match self.from {
            Announcer::Upstream => self.until + OVERTIME,
            Announcer::Router(..) => self.until,
        }
    }
}

/// True if two prefixes are the same network. The suffix is that of this server.
fn is_same(one: &Pref64, other: &Pref64) -> bool {
    (one.address(), one.length()) == (other.address(), other.length())
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
