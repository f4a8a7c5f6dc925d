//! The bound of the loop.

use super::*;
use crate::base::network::{Network, Networks};
use crate::base::time::{Instant, Span};
use crate::dns64::decision::tests::configuration;
use crate::engine::Engine;
use crate::interface::{Client, Link, Transport};
use crate::machine::Machine;
use crate::settings::{Capacity, Settings};
use crate::upstream::config::{Select, UpstreamConfig};
use core::net::{Ipv6Addr, SocketAddr};
use wire::Flags;

/// DNS64 with the well-known prefix, one upstream, and no limits.
fn settings() -> Settings {
    Settings {
        allow: Networks(vec![Network::new(Ipv6Addr::UNSPECIFIED, 0)]),
        upstream: UpstreamConfig {
            forwarders: vec!["192.0.2.53:53".parse().unwrap()],
            zones: vec![],
            select: Select::Ordered,
            timeout: Span::from_secs(1),
            tries: 3,
            transport: Transport::Udp,
            mix_case: true,
            tls: vec![],
        },
        dns64: configuration(),
        local_data: Default::default(),
        server_names: Default::default(),
        rpz: Default::default(),
        private_addresses: None,
        cache: Default::default(),
        udp_size: 1232,
        client_subnet: Default::default(),
        cookies: Default::default(),
        pending_per_client: 1000,
        client_prefix: 56,
        queries_per_client: 0,
        responses_per_client: 0,
        validation: None,
        needs: None,
    }
}

/// A datapath that takes everything and keeps the last answer.
#[derive(Default)]
struct LastAnswer(Vec<u8>);

impl Outbox for LastAnswer {
    fn answer_frame(&mut self, _: &Client, size: usize) -> Option<&mut [u8]> {
        self.0 = vec![0; size];
        Some(&mut self.0)
    }

    fn send_answer(&mut self, _: &Client, length: usize) -> bool {
        self.0.truncate(length);
        true
    }

    fn query_frame(&mut self, _: Link) -> Option<&mut [u8]> {
        self.0 = vec![0; 512];
        Some(&mut self.0)
    }

    fn send_query(&mut self, _: Link, length: usize) -> bool {
        length > 0
    }

    fn open(&mut self, _: Link, _: SocketAddr, _: Transport, _: u16) -> bool {
        true
    }

    fn close(&mut self, _: Link) {}
}

#[test]
fn a_resolution_that_takes_too_many_steps_ends_in_servfail_which_is_counted() {
    let capacity = Capacity { pending: 4, cache: 0 };
    let mut engine = Engine::new(settings(), capacity, [7; 32]);
    let mut out = LastAnswer::default();
    let query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x00\x00\x1c\x00\x01";
    let client = Client::udp("[2001:db8:c::1]:5000".parse().unwrap());
    engine.query(Instant(1), &client, query, &mut out);
    let pending = 0;
    let outbound = engine.resolver.clients.pending_queries[pending].outbound;
    let Engine { resolver, counters } = &mut engine;
    let cx = &mut Context { now: Instant(2), out: &mut out, counters };
    join::detach(&mut resolver.clients, &mut resolver.upstream, pending);
    resolver.take_steps(pending, Progress::FoundSilence, 0, cx);
    assert!(!resolver.upstream.outbound_queries[outbound].is_wanted());
    let answer = Message::parse(&out.0).unwrap();
    assert!(answer.flags().contains(Flags::QR));
    assert_eq!((answer.id(), answer.rcode()), (0x1234, Rcode::SERVFAIL));
    let counted = [Counter::NotSynthesizedFailure, Counter::ResponsesServFail];
    assert_eq!((engine.pending(), counted.map(|counter| engine.counters().get(counter))), (0, [1, 1]));
}
