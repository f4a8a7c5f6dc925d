//! The packet cache of the stream threads: answers to questions that are asked often, without a worker.

use crate::client::{Answer, Tcp, embedded, name_of};
use crate::daemon::{Daemon, PREFIX, Setup, wait_until};
use crate::encrypted_service::{Listeners, Pair, TlsClient, trusting};
use crate::upstream::{Behavior, Upstream};
use wire::{Rcode, Type};

const OTHER: &str = "2001:db8:65::/96";
const HITS: &str = "cache_hits_total{kind=\"streams\"}";

/// Asks until the stream thread itself has answered some queries.
pub fn warm(server: &Daemon, mut ask: impl FnMut() -> Answer) {
    let before = server.stat(HITS);
    wait_until("the stream thread answers", || {
        (0..50).for_each(|_| assert_eq!(ask().rcode, Rcode::NOERROR));
        server.stat(HITS) > before
    });
}

#[test]
fn every_transport_gets_its_answers_and_every_query_is_counted() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let pair = Pair::new();
    let listeners = Listeners::new(&pair);
    let server = listeners.add_to(Setup::new(upstream.address)).start();
    let mut tls = TlsClient::to(listeners.dot, &trusting(&[&pair], b"dot"));
    let mut https = TlsClient::to(listeners.doh, &trusting(&[&pair], b"http/1.1"));
    let mut tcp = Tcp::to(server.v4());
    let mut asked = [0.0; 3];
    let right = |answer: Answer| {
        assert_eq!(answer.addresses, [embedded(PREFIX, 7)]);
        answer
    };
    warm(&server, || {
        asked[0] += 1.0;
        right(tcp.ask(&name_of(7), Type::AAAA))
    });
    warm(&server, || {
        asked[1] += 1.0;
        right(tls.ask(&name_of(7)))
    });
    warm(&server, || {
        asked[2] += 1.0;
        right(https.post(&name_of(7)))
    });
    let counted = || {
        ["tcp", "tls", "https"]
            .map(|name| server.stat(&format!("queries_total{{transport=\"{name}\",family=\"ipv4\"}}")))
    };
    wait_until("all queries are counted", || counted() == asked);
    let sum: f64 = asked.iter().sum();
    assert_eq!(server.stat("responses_total{rcode=\"noerror\"}"), sum);
    assert_eq!(upstream.asked(&name_of(7), Type::AAAA), 1);
}

#[test]
fn a_reload_and_a_flush_end_the_answers_at_once() {
    let upstream = Upstream::start(|_| Behavior::Answer);
    let pair = Pair::new();
    let listeners = Listeners::new(&pair);
    let server = listeners.add_to(Setup::new(upstream.address)).start();
    let mut tls = TlsClient::to(listeners.dot, &trusting(&[&pair], b"dot"));
    for round in 0..10 {
        warm(&server, || tls.ask(&name_of(7)));
        let prefix = if round % 2 == 0 { OTHER } else { PREFIX };
        server.rewrite(&[&format!("dns64.prefixes = [\"{prefix}\"]")]);
        assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
        assert_eq!(tls.ask(&name_of(7)).addresses, [embedded(prefix, 7)], "round {round}");
    }
    warm(&server, || tls.ask(&name_of(7)));
    let before = upstream.asked(&name_of(7), Type::AAAA);
    assert_eq!(server.ctl(&["flush"]).status.code(), Some(0));
    tls.ask(&name_of(7));
    let after = upstream.asked(&name_of(7), Type::AAAA);
    assert_eq!(after, before + 1, "the first query after the flush goes upstream");
    warm(&server, || tls.ask(&name_of(7)));
    server.rewrite(&["server.allow = [\"2001:db8::/32\"]"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!(tls.ask(&name_of(7)).rcode, Rcode::REFUSED);
}
