//! Truth of the instrument over HTTPS and QUIC: each query has its stream, handshakes are counted, and faults are named.

use crate::device::multiplexed::{Answer, MultiplexedDevice, right};
use crate::device::tls::{self, Forgetful, parts, resuming, run};
use crate::device::{self, Query, assert_verdict, order};
use measure::order::{Load, Transport};
use measure::outcome::Verdict;
use sixfold_load::{HttpOptions, LoadOptions, TlsOptions};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const BOTH: [Transport; 2] = [Transport::Https, Transport::Quic];

/// Settings that trust a device.
fn trusting(device: &MultiplexedDevice) -> LoadOptions {
    LoadOptions { tls: tls::trusting(&device.ca), ..LoadOptions::default() }
}

#[test]
fn kept_connections_carry_all_queries_each_on_its_stream() {
    for transport in BOTH {
        let device = MultiplexedDevice::start(transport, |_| (), right);
        let outcome = run(device.address, transport, false, trusting(&device)).unwrap();
        assert_verdict(&outcome, Verdict::Pass, "");
        let (connections, tls) = parts(&outcome);
        assert_eq!((outcome.valid, connections.opened, connections.established), (100, 4, 4));
        assert_eq!((tls.full, tls.resumed, connections.handshake_us.count), (4, 0, 4));
        assert_eq!((connections.closed_by_server, connections.aborted), (0, 0));
        // Each of them has at least 46 octets of a query and 40 of headers; each reply 28 more.
        let traffic = &outcome.traffic.per_query;
        assert!(traffic.octets_sent >= 86.0 && traffic.octets_received >= 114.0, "{traffic:?}");
        assert!(traffic.packets_sent >= 0.1 && traffic.packets_received >= 0.1, "{traffic:?}");
    }
}

#[test]
fn a_connection_for_each_query_has_a_full_handshake_or_resumes_a_session() {
    for transport in BOTH {
        let device = MultiplexedDevice::start(transport, |_| (), right);
        let outcome = run(device.address, transport, true, trusting(&device)).unwrap();
        assert_verdict(&outcome, Verdict::Pass, "");
        let (connections, tls) = parts(&outcome);
        assert_eq!((outcome.valid, connections.opened, connections.answer_us.count), (100, 100, 100));
        assert_eq!((tls.full, tls.resumed, tls.early_data_sent), (100, 0, 0));
        let outcome =
            resuming(device.address, transport, TlsOptions { resume: true, ..tls::trusting(&device.ca) });
        let (_, tls) = parts(&outcome);
        assert_eq!((tls.full, tls.resumed, tls.early_data_sent), (1, outcome.sent - 1, 0));
        let ended: u64 = tls.per_second.iter().map(|second| second.full + second.resumed).sum();
        assert!(ended == outcome.sent && tls.tickets >= tls.resumed, "{tls:?}");
    }
}

#[test]
fn queries_over_quic_leave_as_early_data_and_refused_ones_leave_again() {
    for is_forgetful in [false, true] {
        let change = |config: &mut rustls::ServerConfig| {
            config.max_early_data_size = u32::MAX;
            if is_forgetful {
                config.session_storage = Arc::new(Forgetful);
            }
        };
        let device = MultiplexedDevice::start(Transport::Quic, change, right);
        let tls = TlsOptions { early_data: true, ..tls::trusting(&device.ca) };
        let outcome = resuming(device.address, Transport::Quic, tls);
        let (_, tls) = parts(&outcome);
        // A reply to early data can come before the next tickets, so a later handshake may be a full one, too.
        assert!(tls.early_data_sent >= 1 && tls.full + tls.resumed == outcome.sent, "{tls:?}");
        assert_eq!(tls.early_data_accepted, if is_forgetful { 0 } else { tls.early_data_sent });
        assert_eq!(tls.resumed, tls.early_data_accepted);
    }
}

#[test]
fn a_query_over_https_is_in_the_path_with_get() {
    let device = MultiplexedDevice::start(Transport::Https, |_| (), right);
    let http = HttpOptions { get: true, ..HttpOptions::default() };
    let outcome =
        run(device.address, Transport::Https, false, LoadOptions { http, ..trusting(&device) }).unwrap();
    assert_verdict(&outcome, Verdict::Pass, "");
    assert_eq!((outcome.valid, device.gets.load(Ordering::Relaxed)), (100, 100));
}

#[test]
fn responses_without_a_message_are_counted_by_status_and_type() {
    let device = MultiplexedDevice::start(
        Transport::Https,
        |_| (),
        |query: &Query<'_>| match query.number % 10 {
            1 => Answer::Status(503),
            2 => Answer::Status(404),
            3 => Answer::Kind("text/html"),
            4 => Answer::Reset,
            5 => Answer::Message(query.patched(&[(1, 7)])),
            _ => right(query),
        },
    );
    let outcome = run(device.address, Transport::Https, false, trusting(&device)).unwrap();
    let (connections, _) = parts(&outcome);
    assert_eq!((outcome.valid, outcome.lost), (50, 50));
    assert_eq!((connections.lost["status"], connections.lost["content-type"]), (20, 10));
    // The message with another ID than 0 is the only one on its stream.
    assert_eq!((connections.lost["stream"], outcome.invalid["stale-id"]), (20, 10));
    assert_eq!((connections.http_statuses["503"], connections.http_statuses["404"]), (10, 10));
    assert_eq!((connections.opened, connections.closed_by_server), (4, 0));
}

#[test]
fn a_connection_that_the_server_closes_loses_its_open_queries_and_is_replaced() {
    for transport in BOTH {
        let device = MultiplexedDevice::start(
            transport,
            |_| (),
            // Queries 40, 44 and 48 have the first of four connections.
            |query: &Query<'_>| match query.number {
                40 | 44 => Answer::Silence,
                48 => Answer::Close,
                _ => right(query),
            },
        );
        let outcome = run(device.address, transport, false, trusting(&device)).unwrap();
        let (connections, _) = parts(&outcome);
        let lost: u64 = connections.lost.values().sum();
        // Later ones are lost, too, if they leave before the tester sees the end.
        assert!(lost >= 3 && lost == outcome.lost && outcome.valid == 100 - lost, "{outcome:?}");
        assert_eq!((connections.opened, connections.established), (5, 5));
        assert_eq!(connections.closed_by_server + connections.reset, 1);
    }
}

#[test]
fn streams_that_the_server_resets_over_quic_lose_their_queries() {
    let script = |query: &Query<'_>| if query.number % 4 == 1 { Answer::Reset } else { right(query) };
    let device = MultiplexedDevice::start(Transport::Quic, |_| (), script);
    let outcome = run(device.address, Transport::Quic, false, trusting(&device)).unwrap();
    let (connections, _) = parts(&outcome);
    assert_eq!((outcome.valid, outcome.lost, connections.lost["stream"]), (75, 25, 25));
}

#[test]
fn a_server_of_another_protocol_loses_the_queries_with_the_reason_on_each_transport() {
    for transport in BOTH {
        let change = |config: &mut rustls::ServerConfig| config.alpn_protocols = vec![b"other".to_vec()];
        let device = MultiplexedDevice::start(transport, change, right);
        let outcome = run(device.address, transport, true, trusting(&device)).unwrap();
        let (connections, tls) = parts(&outcome);
        assert_eq!((outcome.lost, connections.established, connections.lost["tls"]), (100, 0, 100));
        assert_eq!(tls.failed.values().sum::<u64>(), 100, "{tls:?}");
    }
    // A server that takes no part in ALPN may speak HTTP/1.1.
    let device = MultiplexedDevice::start(Transport::Https, |config| config.alpn_protocols.clear(), right);
    let outcome = run(device.address, Transport::Https, true, trusting(&device)).unwrap();
    let (_, tls) = parts(&outcome);
    assert_eq!(tls.failed["the server did not choose HTTP/2 (ALPN h2)"], 100);
}

#[test]
fn a_certificate_that_does_not_fit_ends_a_load_over_https_or_quic_at_once() {
    for transport in BOTH {
        let device = MultiplexedDevice::start(transport, |_| (), right);
        let tls = TlsOptions { name: Some("other.test".into()), ..tls::trusting(&device.ca) };
        let options = LoadOptions { tls, ..LoadOptions::default() };
        let refused = run(device.address, transport, false, options).unwrap_err().to_string();
        assert!(refused.contains("--tls-name NAME") && refused.contains("other.test"), "{refused}");
    }
}

#[test]
fn a_closed_port_refuses_queries_over_https() {
    let device = MultiplexedDevice::start(Transport::Https, |_| (), right);
    let options = trusting(&device);
    let mut order = Load { transport: Transport::Https, ..order("127.0.0.9:1".parse().unwrap(), 400.0, 250) };
    order.lanes.connection_per_query = true;
    let outcome = device::run(&order, &options).unwrap().0;
    assert_eq!((outcome.connection_refused, outcome.lost), (100, 0));
    assert_eq!(parts(&outcome).0.refused, 100);
}

#[test]
fn early_data_over_https_is_refused_with_the_remedy() {
    let device = MultiplexedDevice::start(Transport::Https, |_| (), right);
    let tls = TlsOptions { early_data: true, ..tls::trusting(&device.ca) };
    let refused = run(device.address, Transport::Https, true, LoadOptions { tls, ..LoadOptions::default() });
    assert!(refused.unwrap_err().to_string().contains("--transport tls or quic"));
}
