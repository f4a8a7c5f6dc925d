//! An engine that may be observed: a [`Machine`] that passes everything on to the engine, and tells an [`Observer`] of the messages
//! and events, if there is one. `sixfold ctl trace` and dnstap are observers.
//!
//! Without an observer, each input costs one comparison: the engine then runs with the driver's own outbox, which builds no events.
//! With an observer it runs with an outbox that tells of everything.
//!
//! So the engine's code exists once for each kind of outbox: sockets, explanations, observed sockets. The functions on the way of a
//! query with a single caller are `#[inline(always)]`: the copies of that caller would otherwise share one function, and pay for the
//! calls (a resolution 7 % more instructions, a cached answer 12 %).

use crate::base::time::{Instant, Span};
use crate::engine::Engine;
use crate::explain::Policy;
use crate::interface::{Client, Link, Outbox, SignedData, Transport, VerificationId};
use crate::limits::MESSAGE;
use crate::machine::Machine;
use crate::packet_cache::{PacketCacheReply, PacketCacheTask};
use crate::trace::{Subject, TraceEvent, Unreachable};
use core::net::SocketAddr;
use core::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A listener to the messages and events of one engine. It must not block.
pub trait Observer {
    /// A client's query arrives. The engine handles it next. `policy` returns the settings that a trace refers to.
    fn query(&mut self, at: Moment, from: &Client, message: &[u8], policy: impl FnOnce() -> Arc<Policy>);

    /// The engine has handled the query.
    fn end_query(&mut self, at: Moment);

    /// A response to a client is handed to the sockets.
    fn answer(&mut self, at: Moment, to: &Client, message: &[u8]);

    /// A query to an upstream is handed to the sockets.
    fn ask(&mut self, at: Moment, link: &ObservedLink, message: &[u8]);

    /// A message from an upstream arrives. The engine decides next if it is believed.
    fn reply(&mut self, at: Moment, link: &ObservedLink, message: &[u8]);

    /// An event of the engine.
    fn event<'n>(&mut self, at: Moment, subject: Subject, event: impl FnOnce() -> TraceEvent<'n>);
}

/// Time of a message or event, which is the time of the driver's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Engine time.
    pub now: Instant,
    /// Time since 1970.
    pub unix: Span,
}

/// Addresses of a link to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedLink {
    /// Address of the upstream.
    pub upstream: SocketAddr,
    /// Transport of the link.
    pub transport: Transport,
    /// Local address, if the driver knows it.
    pub local: Option<SocketAddr>,
    generation: u16,
}

/// An engine, and its observer, if there is one.
pub struct ObservedEngine<O> {
    engine: Engine,
    observation: Option<Box<Observation<O>>>,
}

struct Observation<O> {
    observer: O,
    /// Open links, by slot.
    links: Vec<Option<ObservedLink>>,
    /// Settings for traces, until they may have changed.
    policy: Option<Arc<Policy>>,
    /// The message that is being written.
    frame: Box<[u8]>,
}

impl<O: Observer> ObservedEngine<O> {
    /// An engine without an observer.
    pub fn new(engine: Engine) -> ObservedEngine<O> {
        ObservedEngine { engine, observation: None }
    }

    /// Sets the time of day, as [`Engine::set_unix_time`] does.
    pub fn set_unix_time(&mut self, now: Instant, unix: Span) {
        self.engine.set_unix_time(now, unix);
    }

    /// The observer.
    pub fn observer(&mut self) -> Option<&mut O> {
        self.observation.as_mut().map(|observation| &mut observation.observer)
    }

    /// Changes the observer, or removes it. It hears of the queries that come from now on.
    pub fn observe(&mut self, observer: Option<O>) {
        // An observer hears of every query, so a packet cache must not answer any.
        self.engine.end_packet_cache_entries();
        let engine = &self.engine;
        self.observation = observer.map(|observer| {
            let mut links = Vec::new();
            for (link, upstream, transport) in engine.links() {
                set(&mut links, link, upstream, transport);
            }
            Box::new(Observation { observer, links, policy: None, frame: vec![0; MESSAGE].into() })
        });
    }
}

impl<O> Deref for ObservedEngine<O> {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl<O> DerefMut for ObservedEngine<O> {
    /// The engine, for changes, perhaps of its settings.
    fn deref_mut(&mut self) -> &mut Engine {
        if let Some(observation) = &mut self.observation {
            observation.policy = None;
        }
        &mut self.engine
    }
}

/// Enters a link into the table.
fn set(links: &mut Vec<Option<ObservedLink>>, link: Link, upstream: SocketAddr, transport: Transport) {
    let slot = usize::from(link.slot);
    if links.len() <= slot {
        links.resize(slot + 1, None);
    }
    links[slot] = Some(ObservedLink { upstream, transport, local: None, generation: link.generation });
}

/// The inputs of an engine that is observed. They are cold, so that the way without an observer does not pay for their frames.
impl<O: Observer> Observation<O> {
    #[cold]
    #[inline(never)]
    fn query(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        from: &Client,
        message: &[u8],
        out: &mut impl Outbox,
    ) {
        let at = Moment { now, unix: engine.unix_time(now) };
        let Observation { observer, policy, .. } = self;
        let policy = || Arc::clone(policy.get_or_insert_with(|| Arc::new(Policy::of(engine.settings()))));
        observer.query(at, from, message, policy);
        engine.query(now, from, message, &mut self.outbox(at, out));
        self.observer.end_query(at);
    }

    #[cold]
    #[inline(never)]
    fn reply(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        via: Link,
        message: &mut [u8],
        out: &mut impl Outbox,
    ) {
        let at = Moment { now, unix: engine.unix_time(now) };
        let mut out = self.outbox(at, out);
        if let Some(link) = out.link(via) {
            out.observer.reply(at, &link, message);
        }
        engine.reply(now, via, message, &mut out);
    }

    #[cold]
    #[inline(never)]
    fn on_link_failure(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        via: Link,
        reason: Unreachable,
        out: &mut impl Outbox,
    ) {
        let at = Moment { now, unix: engine.unix_time(now) };
        engine.on_link_failure(now, via, reason, &mut self.outbox(at, out));
    }

    #[cold]
    #[inline(never)]
    fn verified(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        id: VerificationId,
        is_valid: bool,
        out: &mut impl Outbox,
    ) {
        let at = Moment { now, unix: engine.unix_time(now) };
        engine.verified(now, id, is_valid, &mut self.outbox(at, out));
    }

    #[cold]
    #[inline(never)]
    fn expire(&mut self, engine: &mut Engine, now: Instant, out: &mut impl Outbox) -> Option<Instant> {
        let at = Moment { now, unix: engine.unix_time(now) };
        engine.expire(now, &mut self.outbox(at, out))
    }

    /// An outbox that tells the observer of everything.
    fn outbox<'o, X: Outbox>(&'o mut self, at: Moment, out: &'o mut X) -> ObservedOutbox<'o, O, X> {
        let Observation { observer, links, frame, .. } = self;
        ObservedOutbox { observer, links, frame, at, out }
    }
}

impl<O: Observer> Machine for ObservedEngine<O> {
    #[inline(always)]
    fn prefetch_cache_lines<'m>(&self, messages: impl Iterator<Item = &'m [u8]>) {
        self.engine.prefetch_cache_lines(messages);
    }

    #[inline(always)]
    fn query(&mut self, now: Instant, from: &Client, message: &[u8], out: &mut impl Outbox) {
        match &mut self.observation {
            None => self.engine.query(now, from, message, out),
            Some(observation) => observation.query(&mut self.engine, now, from, message, out),
        }
    }

    #[inline(always)]
    fn reply(&mut self, now: Instant, via: Link, message: &mut [u8], out: &mut impl Outbox) {
        match &mut self.observation {
            None => self.engine.reply(now, via, message, out),
            Some(observation) => observation.reply(&mut self.engine, now, via, message, out),
        }
    }

    #[inline(always)]
    fn on_link_failure(&mut self, now: Instant, via: Link, reason: Unreachable, out: &mut impl Outbox) {
        match &mut self.observation {
            None => self.engine.on_link_failure(now, via, reason, out),
            Some(observation) => observation.on_link_failure(&mut self.engine, now, via, reason, out),
        }
    }

    fn verified(&mut self, now: Instant, id: VerificationId, is_valid: bool, out: &mut impl Outbox) {
        match &mut self.observation {
            None => self.engine.verified(now, id, is_valid, out),
            Some(observation) => observation.verified(&mut self.engine, now, id, is_valid, out),
        }
    }

    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.engine.is_idle()
    }

    fn serve_packet_cache(&mut self, now: Instant, mut task: PacketCacheTask) -> PacketCacheReply {
        if self.observation.is_some() {
            task.wanted.clear();
        }
        self.engine.serve_packet_cache(now, task)
    }

    #[inline(always)]
    fn expire(&mut self, now: Instant, out: &mut impl Outbox) -> Option<Instant> {
        match &mut self.observation {
            None => self.engine.expire(now, out),
            Some(observation) => observation.expire(&mut self.engine, now, out),
        }
    }
}

/// The outbox of the driver, and the observer of everything that passes through it. Messages are written into a frame of its own, so that
/// the observer can read them.
struct ObservedOutbox<'o, O, X> {
    observer: &'o mut O,
    links: &'o mut Vec<Option<ObservedLink>>,
    frame: &'o mut [u8],
    at: Moment,
    out: &'o mut X,
}

impl<O, X: Outbox> ObservedOutbox<'_, O, X> {
    /// The addresses of an open link. The local address is asked for once.
    fn link(&mut self, via: Link) -> Option<ObservedLink> {
        let link = self.links.get_mut(usize::from(via.slot))?.as_mut()?;
        if link.generation != via.generation {
            return None;
        }
        if link.local.is_none() {
            link.local = self.out.local(via);
        }
        Some(*link)
    }
}

impl<O: Observer, X: Outbox> Outbox for ObservedOutbox<'_, O, X> {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        self.frame.get_mut(..size)
    }

    fn send_answer(&mut self, to: &Client, length: usize) -> bool {
        let Some(frame) = self.out.answer_frame(to, length) else { return false };
        let message = &self.frame[..length];
        frame[..length].copy_from_slice(message);
        if length > 0 {
            self.observer.answer(self.at, to, message);
        }
        self.out.send_answer(to, length)
    }

    fn drop_query(&mut self, from: &Client) {
        self.out.drop_query(from);
    }

    fn query_frame(&mut self, _: Link) -> Option<&mut [u8]> {
        Some(self.frame)
    }

    fn send_query(&mut self, via: Link, length: usize) -> bool {
        let link = self.link(via);
        let Some(frame) = self.out.query_frame(via) else { return false };
        let message = &self.frame[..length];
        frame[..length].copy_from_slice(message);
        if let Some(link) = link {
            self.observer.ask(self.at, &link, message);
        }
        self.out.send_query(via, length)
    }

    fn open(&mut self, link: Link, upstream: SocketAddr, transport: Transport, port: u16) -> bool {
        let is_open = self.out.open(link, upstream, transport, port);
        if is_open {
            set(self.links, link, upstream, transport);
        }
        is_open
    }

    fn local(&self, link: Link) -> Option<SocketAddr> {
        self.out.local(link)
    }

    fn close(&mut self, link: Link) {
        self.out.close(link);
    }

    fn verify(&mut self, id: VerificationId, signed: &SignedData<'_>) -> bool {
        self.out.verify(id, signed)
    }

    fn trace<'n>(&mut self, subject: Subject, event: impl FnOnce() -> TraceEvent<'n>) {
        self.observer.event(self.at, subject, event);
    }
}
