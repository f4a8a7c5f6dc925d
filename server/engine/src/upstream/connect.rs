//! The link for the next query to a server: a UDP socket or a connection that is open, or a new one.
//!
//! One connection carries all queries to an upstream. There are more, up to [`STREAM_LINKS`], only for an upstream that bounds its
//! connections (`connection_policy.rs`).

use crate::context::Context;
use crate::counters::Counter;
use crate::interface::{Link, Outbox, Transport};
use crate::limits::STREAM_LINKS;
use crate::trace::Unreachable;
use crate::upstream::Upstream;
use crate::upstream::connection_policy::Room;
use crate::upstream::links::Release;
use crate::upstream::server::Server;

impl Upstream {
    /// The link for the next query to a server: an open one, or a new one on a new random port when the old one has carried enough
    /// queries or lived long enough. None: no link could be opened.
    #[inline]
    pub(super) fn link_to(
        &mut self,
        server: u16,
        transport: Transport,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Link> {
        if transport.is_stream() {
            return self.connection_to(server, transport, cx);
        }
        if let Some(link) =
            self.servers.list[usize::from(server)].socket.and_then(|slot| self.links.link(slot))
        {
            if self.links.has_room(link, cx.now) {
                return Some(link);
            }
            self.retire(link, cx.out);
        }
        self.open_link(server, transport, cx)
    }

    /// The connection for the next query to a server: the newest that has room, a new one, or the one with the fewest queries. None: the
    /// server has as many as it may have, or none could be opened.
    fn connection_to(
        &mut self,
        server: u16,
        transport: Transport,
        cx: &mut Context<'_, impl Outbox>,
    ) -> Option<Link> {
        let number = usize::from(server);
        self.servers.list[number].connection_policy.refresh(cx.now);
        let mut least: Option<Link> = None;
        for place in (0..self.servers.list[number].connections.len()).rev() {
            let Server { connections, connection_policy, .. } = &self.servers.list[number];
            // `open_link` adds a connection when it has opened it; `forget_link` alone frees it, and takes it out.
            let link = self.links.link(connections[place]).expect("a connection for new queries is open");
            match connection_policy.room(self.links.usage(link), cx.now) {
                Room::Free => return Some(link),
                Room::Spent => self.retire(link, cx.out),
                Room::Busy => {
                    let queries = |link| self.links.outstanding(link);
                    if least.is_none_or(|least| queries(link) < queries(least)) {
                        least = Some(link);
                    }
                }
            }
        }
        if self.has_all_connections(server) { least } else { self.open_link(server, transport, cx) }
    }

    /// True if no further connection to a server may be opened, because the server bounds its connections.
    pub(super) fn has_all_connections(&self, server: u16) -> bool {
        let Server { connection_policy, streams, .. } = &self.servers.list[usize::from(server)];
        connection_policy.is_bounded() && usize::from(*streams) >= STREAM_LINKS
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
        if transport.is_stream() {
            server.connections.push(link.slot);
            server.streams += 1;
        } else {
            server.socket = Some(link.slot);
        }
        // A question from before a reload may go once more to a server that the configuration no longer names.
        self.has_rare_work |= !server.configured;
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
            let connections = core::mem::take(&mut server.connections);
            for slot in server.socket.take().into_iter().chain(connections) {
                // As in `connection_to`.
                let link = self.links.link(slot).expect("a link for new queries is open");
                self.retire(link, out);
            }
        }
    }

    /// Retires the UDP link to a server that new queries take.
    pub(super) fn retire_socket(&mut self, server: u16, out: &mut impl Outbox) {
        let socket = self.servers.list[usize::from(server)].socket;
        if let Some(link) = socket.and_then(|slot| self.links.link(slot)) {
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
        server.socket.take_if(|slot| *slot == link.slot);
        server.connections.retain(|&slot| slot != link.slot);
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
