//! The sources of prefixes: the upstreams are asked, routers are heard, and the news is logged.

use super::asker::Asker;
use crate::observers::WorkerEngine;
use datapath::Shared;
use datapath::router_options::{Options, RouterOptions};
use engine::{Instant, Span};
use gateways::pref64_option::announced;
use gateways::{Discovery, News, Trouble};
use kernel::router_solicitation;
use socket2::Socket;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Interval at which a question that is under way is looked for.
const LOOK: Span = Span::from_millis(10);

/// Interval at which interfaces are looked for: one may come, go, or come again as another one.
const INTERFACES: Span = Span::from_secs(2);

/// Options of routers that are read in one turn. More wait in the socket.
const OPTIONS: usize = 64;

/// Solicitations of the routers on a link at most, and the interval between two (RFC 4861 section 10).
const SOLICITATIONS: u8 = 3;
const SOLICITATION_INTERVAL: Span = Span::from_secs(4);

/// An interface that is a source.
#[derive(Clone, Copy, Default)]
struct Interface {
    /// Its number; 0: it does not exist.
    number: u32,
    /// Solicitations of its routers so far, and the time of the next one.
    solicitations: u8,
    next: Instant,
}

/// The sources.
pub struct Sources {
    asker: Asker,
    routers: Option<RouterOptions>,
    /// Socket for solicitations, if the process had the right to one.
    solicitations: Option<Socket>,
    /// The interfaces that are sources, by their names.
    interfaces: HashMap<String, Interface>,
    /// Time of the next look at the interfaces.
    next_look: Instant,
    /// True while routers cannot be heard on this machine, which is logged once.
    is_deaf: bool,
}

impl Sources {
    /// Nothing was asked or heard. `solicitations`: a socket for router solicitations.
    pub fn new(workers: Arc<Shared<WorkerEngine>>, solicitations: Option<Socket>) -> Sources {
        let (asker, interfaces) = (Asker::new(workers), HashMap::new());
        Sources { asker, routers: None, solicitations, interfaces, next_look: Instant(0), is_deaf: false }
    }

    /// The socket over which options of routers come, if some are to be heard.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.routers.as_ref().map(RouterOptions::as_fd)
    }

    /// Next time at which something is to be done.
    pub fn next(&self, discovery: &Discovery, now: Instant) -> Option<Instant> {
        let look = self.asker.is_waiting().then(|| now + LOOK);
        let interfaces = discovery.interfaces().next().map(|_| self.next_look);
        discovery.next().into_iter().chain(look).chain(interfaces).min()
    }

    /// Does what is due.
    pub fn turn(&mut self, discovery: &mut Discovery, now: Instant) {
        if discovery.has_sources() {
            self.hear(discovery, now);
            if let Some((told, has_looped)) = self.asker.poll() {
                discovery.answered(now, told, has_looped);
            }
            discovery.expire(now);
            if discovery.take_question(now) && !self.asker.begin() {
                discovery.answered(now, gateways::Told::Failure, false);
            }
        } else {
            self.asker.give_up();
        }
        if discovery.interfaces().next().is_none() {
            self.routers = None;
        }
    }

    /// Looks for the interfaces, and reads what routers announce.
    fn hear(&mut self, discovery: &mut Discovery, now: Instant) {
        let names: Vec<String> = discovery.interfaces().map(str::to_owned).collect();
        if names.is_empty() {
            return;
        }
        if self.next_look <= now || names.iter().any(|name| !self.interfaces.contains_key(name)) {
            self.look_for(&names, discovery, now);
        }
        let Some(routers) = &self.routers else { return };
        let heard: Vec<Options> = std::iter::from_fn(|| routers.take()).take(OPTIONS).collect();
        // A router speaks at once to an interface that has come, and then not for minutes: one that is not known may be a source by now.
        let is_known = |heard: &Options| self.interfaces.values().any(|of| of.number == heard.interface);
        if !heard.iter().all(is_known) {
            self.look_for(&names, discovery, now);
        }
        for Options { interface, router, options } in heard {
            let mut named = self.interfaces.iter().filter(|(_, of)| of.number == interface);
            if let Some((name, _)) = named.next() {
                discovery.announced(now, name, router, &announced(&options));
            }
        }
    }

    /// Looks for the interfaces with these names.
    fn look_for(&mut self, names: &[String], discovery: &mut Discovery, now: Instant) {
        self.next_look = now + INTERFACES;
        if self.routers.is_none() {
            self.subscribe();
        }
        for name in names {
            let Some(routers) = &self.routers else { return };
            let number = routers.interface(name).ok().flatten().unwrap_or(0);
            let known = self.interfaces.entry(name.clone()).or_default();
            if known.number != number {
                // Another interface of this name has other routers.
                if known.number != 0 {
                    discovery.note_interface(now, name, false);
                }
                *known = Interface { number, ..Interface::default() };
            }
            discovery.note_interface(now, name, number != 0);
            if number != 0 && !discovery.has_heard(name) {
                known.solicit(self.solicitations.as_ref(), now);
            }
        }
    }

    /// Subscribes to the options of routers.
    fn subscribe(&mut self) {
        match RouterOptions::subscribe() {
            Ok(routers) => (self.routers, self.is_deaf) = (Some(routers), false),
            Err(error) => {
                if !std::mem::replace(&mut self.is_deaf, true) {
                    tracing::warn!(
                        event = "discovery_failed",
                        "router advertisements cannot be heard: {error}; allow netlink (RestrictAddressFamilies= of the unit needs \
                         AF_NETLINK)"
                    );
                }
            }
        }
    }
}

impl Interface {
    /// Asks the routers, if that is due. Between announcements that nobody asked for are up to 30 minutes (RFC 4861 section 6.2.1).
    fn solicit(&mut self, socket: Option<&Socket>, now: Instant) {
        let Some(socket) = socket.filter(|_| self.solicitations < SOLICITATIONS && self.next <= now) else {
            return;
        };
        // An interface that is not up yet is asked at the next look.
        if router_solicitation::send(socket, self.number).is_ok() {
            self.solicitations += 1;
            self.next = now + SOLICITATION_INTERVAL;
        }
    }
}

/// Logs news.
pub fn log(news: &News) {
    match news {
        News::Found(prefix, from) => {
            let prefix = prefix.to_string();
            tracing::info!(
                event = "prefix_found",
                prefix,
                "the prefix {prefix} was discovered: {from} tells of it"
            );
        }
        News::Lost(prefix, from) => {
            let prefix = prefix.to_string();
            tracing::warn!(
                event = "prefix_lost",
                prefix,
                "the prefix {prefix} is no longer in use: {from} told of it last"
            );
        }
        News::Upstream(Trouble::Failure) => tracing::warn!(
            event = "discovery_failed",
            "the upstream does not say if it has a prefix (ipv4only.arpa is not answered); prefixes that it told of stay in use for \
             an hour after their TTL"
        ),
        News::Upstream(trouble) => {
            let why = trouble_text(*trouble);
            tracing::warn!(event = "discovery_empty", "no prefix was discovered from the upstream: {why}");
        }
        News::Missing(interface) => tracing::warn!(
            event = "interface_missing",
            "there is no interface {interface}: the prefixes that routers announce there are used when it comes"
        ),
        News::Exists(interface) => {
            tracing::info!(
                event = "interface_found",
                "the interface {interface} exists: its routers are heard"
            );
        }
    }
}

/// The reason why an upstream has told of no prefix.
pub fn trouble_text(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Nothing => "it answers that it does no DNS64 (ipv4only.arpa has no AAAA records)",
        Trouble::Failure => "it does not answer",
        Trouble::Loop => "it asks this server in its turn, so that what it tells is this server's own word",
        Trouble::Configured => "it has only prefixes that `dns64.prefixes` names, too",
    }
}
