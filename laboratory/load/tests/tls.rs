//! Truth of the instrument over TLS: handshakes of each kind are counted exactly, and faults are named.

use crate::device;

use device::stream::{Act, right};
use device::tls::{Forgetful, TlsDevice, parts, resuming, settings, trusting};
use device::{Query, assert_verdict};
use measure::order::Transport;
use measure::outcome::{Outcome, TlsConnections, Verdict};
use sixfold_load::{LoadError, LoadOptions, TlsOptions};
use std::sync::Arc;

/// Runs a load of 100 queries in a quarter of a second.
fn run(device: &TlsDevice, is_cold: bool, tls: TlsOptions) -> Result<Outcome, LoadError> {
    let options = LoadOptions { tls, ..LoadOptions::default() };
    device::tls::run(device.address, Transport::Tls, is_cold, options)
}

/// Full and resumed handshakes of all seconds.
fn handshakes(tls: &TlsConnections) -> (u64, u64) {
    tls.per_second.iter().fold((0, 0), |sum, second| (sum.0 + second.full, sum.1 + second.resumed))
}

#[test]
fn kept_connections_carry_all_queries() {
    let device = TlsDevice::start(|_| (), right);
    let outcome = run(&device, false, trusting(&device.ca)).unwrap();
    assert_verdict(&outcome, Verdict::Pass, "");
    let (connections, tls) = parts(&outcome);
    assert_eq!((outcome.valid, connections.opened, connections.established), (100, 4, 4));
    assert_eq!((tls.full, tls.resumed, tls.handshake_us.count), (4, 0, 4));
    assert_eq!((tls.early_data_sent, connections.handshake_us.count), (0, 4));
    // The handshake of TLS follows that of TCP.
    assert!(connections.handshake_us.mean >= tls.handshake_us.mean);
}

#[test]
fn a_connection_for_each_query_has_a_full_handshake_each() {
    let device = TlsDevice::start(|_| (), right);
    let outcome = run(&device, true, trusting(&device.ca)).unwrap();
    assert_verdict(&outcome, Verdict::Pass, "");
    let (connections, tls) = parts(&outcome);
    assert_eq!((connections.opened, tls.full, tls.resumed), (100, 100, 0));
    // Without --resume no session is taken.
    assert_eq!((handshakes(tls), tls.tickets), ((100, 0), 0));
    assert_eq!((connections.answer_us.count, tls.handshake_us.count), (100, 100));
}

#[test]
fn sessions_are_resumed_and_the_query_leaves_as_early_data() {
    let device = TlsDevice::start(|config| config.max_early_data_size = 4096, right);
    let resumed = TlsOptions { resume: true, ..trusting(&device.ca) };
    let outcome = resuming(device.address, Transport::Tls, resumed.clone());
    let (_, tls) = parts(&outcome);
    assert_eq!((tls.full, tls.resumed, tls.early_data_sent), (1, outcome.sent - 1, 0));
    assert_eq!(handshakes(tls), (1, outcome.sent - 1));
    assert!(tls.tickets >= tls.resumed, "each resumed session was given: {tls:?}");
    let outcome = resuming(device.address, Transport::Tls, TlsOptions { early_data: true, ..resumed });
    let (_, tls) = parts(&outcome);
    assert_eq!((tls.full, tls.resumed), (1, outcome.sent - 1));
    assert_eq!((tls.early_data_sent, tls.early_data_accepted), (tls.resumed, tls.resumed));
}

#[test]
fn early_data_that_the_server_refuses_is_sent_again() {
    let device = TlsDevice::start(
        |config| {
            config.max_early_data_size = 4096;
            config.session_storage = Arc::new(Forgetful);
        },
        right,
    );
    let outcome =
        resuming(device.address, Transport::Tls, TlsOptions { early_data: true, ..trusting(&device.ca) });
    let (_, tls) = parts(&outcome);
    assert_eq!((tls.full, tls.resumed), (outcome.sent, 0));
    assert_eq!((tls.early_data_sent, tls.early_data_accepted), (outcome.sent - 1, 0));
    assert!(tls.tickets >= outcome.sent - 1, "the server gives sessions that it does not accept: {tls:?}");
}

#[test]
fn a_server_that_gives_no_sessions_is_told_from_one_that_accepts_none() {
    let device = TlsDevice::start(|config| config.send_tls13_tickets = 0, right);
    let outcome =
        resuming(device.address, Transport::Tls, TlsOptions { resume: true, ..trusting(&device.ca) });
    let (_, tls) = parts(&outcome);
    assert_eq!((tls.full, tls.resumed, tls.tickets), (outcome.sent, 0, 0));
}

#[test]
fn a_server_that_knows_only_tls_1_2_answers_and_its_sessions_are_resumed() {
    let (config, ca) = settings(&[&rustls::version::TLS12], b"dot");
    let device = TlsDevice::start_with(config, ca, right);
    let resumed = TlsOptions { resume: true, ..trusting(&device.ca) };
    let outcome = resuming(device.address, Transport::Tls, resumed);
    let (_, tls) = parts(&outcome);
    assert_eq!((tls.full, tls.resumed), (1, outcome.sent - 1));
}

#[test]
fn a_certificate_that_does_not_fit_ends_the_load_at_once_with_the_remedy() {
    let device = TlsDevice::start(|_| (), right);
    let other = TlsDevice::start(|_| (), right);
    let refused = |tls: TlsOptions| run(&device, false, tls).unwrap_err().to_string();
    let issuer = refused(TlsOptions { ca: Some(other.ca.clone()), ..trusting(&device.ca) });
    assert!(issuer.contains("--tls-ca FILE") && issuer.contains("is refused"), "{issuer}");
    let name = refused(TlsOptions { name: Some("other.test".into()), ..trusting(&device.ca) });
    assert!(name.contains("--tls-name NAME") && name.contains("other.test"), "{name}");
    let address = refused(TlsOptions { name: None, ..trusting(&device.ca) });
    assert!(address.contains("127.0.0.1"), "{address}");
    let outcome = run(&device, false, TlsOptions { insecure: true, ..TlsOptions::default() }).unwrap();
    assert_verdict(&outcome, Verdict::Pass, "");
}

#[test]
fn wrong_settings_are_refused_before_the_load() {
    let device = TlsDevice::start(|_| (), right);
    let refused = |tls: TlsOptions| run(&device, false, tls).unwrap_err().to_string();
    let missing = refused(TlsOptions { ca: Some("/nowhere/ca.pem".into()), ..TlsOptions::default() });
    assert!(missing.contains("/nowhere/ca.pem") && missing.contains("--tls-ca"), "{missing}");
    let name = refused(TlsOptions { name: Some("two words".into()), ..trusting(&device.ca) });
    assert!(name.contains("\"two words\" is no name"), "{name}");
}

#[test]
fn a_server_of_another_protocol_loses_the_queries_with_the_reason() {
    let device = TlsDevice::start(|config| config.alpn_protocols = vec![b"h2".to_vec()], right);
    let outcome = run(&device, true, trusting(&device.ca)).unwrap();
    let (connections, tls) = parts(&outcome);
    assert_eq!((outcome.lost, connections.established, connections.lost["tls"]), (100, 0, 100));
    let (reason, count) = tls.failed.iter().next().unwrap();
    assert!(reason.contains("NoApplicationProtocol") && *count == 100, "{tls:?}");
    assert_verdict(&outcome, Verdict::Fail, "100 lost (tls 100)");
}

#[test]
fn queries_on_a_connection_that_the_server_closes_are_lost_and_named() {
    let device = TlsDevice::start(
        |_| (),
        |query: &Query<'_>| if query.number % 10 == 5 { vec![Act::Close] } else { right(query) },
    );
    let outcome = run(&device, true, trusting(&device.ca)).unwrap();
    let (connections, tls) = parts(&outcome);
    assert_eq!((outcome.valid, outcome.lost, connections.lost["closed"]), (90, 10, 10));
    assert_eq!((tls.full, connections.closed_by_server), (100, 10));
}
