//! The link for the next query to a server: a UDP socket or a connection that is open, or a new one.
//!
//! One connection carries all queries to an upstream. There are more, up to [`STREAM_LINKS`], only for an upstream with a learned
//! limit (`connection_policy.rs`): connections with their last queries, and spare ones that carry one query at a time.

use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Link, Outbox, Transport};
use crate::limits::STREAM_LINKS;
use crate::trace::Unreachable;
use crate::upstream::Upstream;
use crate::upstream::links::Release;

impl Upstream {
    /// The link for the next query to a server: the current one, or a new one on a new random port when the old one has
    /// carried enough queries or lived long enough. None: no link could be opened.
    pub(super) fn link_to(
        &mut self,
        server: u16,
        transport: Transport,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Link> {
        if transport.is_stream() {
            return self.stream_to(server, transport, cx);
        }
        match self.link_with_room(server, transport, cx) {
            None => self.open_link(server, transport, cx),
            link => link,
        }
    }

    /// The current link to a server, if it may take one more query. Else it is retired.
    #[inline(always)]
    fn link_with_room(
        &mut self,
        server: u16,
        transport: Transport,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Link> {
        let state = &mut self.servers.list[usize::from(server)];
        let link = state.current[transport as usize].and_then(|slot| self.links.link(slot))?;
        if self.links.has_room(link, &state.connection_policy, cx.now) {
            return Some(link);
        }
        self.retire(link, cx.out);
        None
    }

    /// The connection for the next query to a server. None: it has as many as it may have, or none could be opened.
    fn stream_to(
        &mut self,
        server: u16,
        transport: Transport,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Link> {
        let number = usize::from(server);
        self.servers.list[number].connection_policy.refresh(cx.now);
        if let Some(link) = self.link_with_room(server, transport, cx) {
            let one_at_a_time = self.servers.list[number].connection_policy.is_one_at_a_time();
            return if one_at_a_time && self.links.outstanding(link) > 0 {
                self.stream_beside(link, server, cx)
            } else {
                Some(link)
            };
        }
        if self.has_all_streams(server) {
            return None;
        }
        self.open_link(server, transport, cx)
    }

    /// The connection for the next query to a server that answers one query at a time, and whose current one is busy: a spare one,
    /// a new one, or the one with the fewest queries.
    #[cold]
    fn stream_beside(&mut self, busy: Link, server: u16, cx: &mut Context<'_, impl Outbox>) -> Option<Link> {
        let number = usize::from(server);
        let transport = self.links.transport(busy);
        let mut least = busy;
        for place in (0..self.servers.list[number].spare.len()).rev() {
            let link = self.links.link(self.servers.list[number].spare[place]).expect("a spare link is open");
            if self.links.transport(link) != transport {
                continue;
            }
            let outstanding = self.links.outstanding(link);
            if !self.links.has_room(link, &self.servers.list[number].connection_policy, cx.now) {
                if outstanding == 0 {
                    self.close(link, cx.out);
                }
            } else if outstanding < self.links.outstanding(least) {
                least = link;
            }
        }
        if self.links.outstanding(least) == 0 || self.has_all_streams(server) {
            return Some(least);
        }
        let opened = self.open_link(server, transport, cx)?;
        self.servers.list[number].spare.push(busy.slot);
        Some(opened)
    }

    /// True if no further connection to a server may be opened, because it has a learned limit.
    pub(super) fn has_all_streams(&self, server: u16) -> bool {
        let server = &self.servers.list[usize::from(server)];
        let is_limited =
            server.connection_policy.questions().is_some() || server.connection_policy.is_one_at_a_time();
        is_limited && usize::from(server.streams) >= STREAM_LINKS
    }

    /// Opens a link to a server, for the queries from now on. None: it could not be opened.
    #[cold]
    #[inline(never)]
    pub(super) fn open_link(
        &mut self,
        server: u16,
        transport: Transport,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Link> {
        let link = self.links.take(server, transport, cx.now, &mut self.random)?;
        // The whole range of unprivileged ports (RFC 5452 section 9.2), not a share of it per worker.
        let port = 1024 + self.random.below(65_536 - 1024) as u16;
        if !cx.out.open(link, self.servers.list[server as usize].address, transport, port) {
            self.links.free(link);
            // No route, no descriptor, forbidden: as good as refused.
            self.servers.list[server as usize].on_refused(Unreachable::NoSocket, cx.now);
            return None;
        }
        self.servers.list[server as usize].untrusted = None;
        self.set_client_cookie(link, server, cx);
        cx.counters.count(Counter::LinksOpened);
        let server = &mut self.servers.list[server as usize];
        server.current[transport as usize] = Some(link.slot);
        server.streams += u16::from(transport.is_stream());
        // A question from before a reload may go once more to a server that the configuration no longer names.
        self.has_stale_links |= !server.configured;
        Some(link)
    }

    /// Makes the client cookie of a link that was just opened.
    fn set_client_cookie(&mut self, link: Link, server: u16, cx: &mut Context<'_, impl Outbox>) {
        if self.parameters.sends_cookies {
            let address = self.servers.list[usize::from(server)].address.ip();
            let cookie = self.cookie_secret.cookie(
                address,
                cx.out.local(link).map(|local| local.ip()),
                cx.now,
                &mut self.random,
            );
            self.links.set_cookie(link, cookie);
        }
    }

    /// Retires the links to servers that the configuration no longer names, or to all.
    pub(super) fn close_stale_links(&mut self, out: &mut impl Outbox) {
        let retires_all = core::mem::take(&mut self.must_retire_all);
        for number in 0..self.servers.list.len() {
            let server = &mut self.servers.list[number];
            if server.configured && !retires_all {
                continue;
            }
            let spare = core::mem::take(&mut server.spare);
            for slot in core::mem::take(&mut server.current).into_iter().flatten().chain(spare) {
                // `link_to` makes a link current when it has opened it; `forget_link` alone frees it, and clears `current`.
                let link = self.links.link(slot).expect("a current link is open");
                self.retire(link, out);
            }
        }
    }

    /// Retires the UDP link to a server that new queries take.
    pub(super) fn retire_current(&mut self, server: u16, out: &mut impl Outbox) {
        let current = self.servers.list[usize::from(server)].current[Transport::Udp as usize];
        if let Some(link) = current.and_then(|slot| self.links.link(slot)) {
            self.retire(link, out);
        }
    }

    /// Has no new query take a link, and closes it if no question waits on it.
    #[cold]
    pub(super) fn retire(&mut self, link: Link, out: &mut impl Outbox) {
        if self.set_aside(link) == Release::Close {
            self.close(link, out);
        }
    }

    /// Takes a link from those for new queries. It closes with its last question.
    pub(super) fn set_aside(&mut self, link: Link) -> Release {
        let server = &mut self.servers.list[usize::from(self.links.server(link))];
        for current in &mut server.current {
            if *current == Some(link.slot) {
                *current = None;
            }
        }
        server.spare.retain(|&slot| slot != link.slot);
        self.links.retire(link)
    }

    /// Closes a link.
    pub(super) fn close(&mut self, link: Link, out: &mut impl Outbox) {
        self.forget_link(link);
        out.close(link);
    }

    /// Forgets a closed link: no new question takes it, and its slot is free.
    pub(super) fn forget_link(&mut self, link: Link) {
        let _ = self.set_aside(link);
        if self.links.transport(link).is_stream() {
            self.servers.list[usize::from(self.links.server(link))].streams -= 1;
        }
        self.links.free(link);
    }
}
