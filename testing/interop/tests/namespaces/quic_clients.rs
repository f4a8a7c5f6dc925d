//! QUIC of others in the cases that need more than one handshake: kdig of Debian 13 under address validation (RFC 9000 section 8.1.2), and
//! a client on aioquic, which sends 0-RTT data (RFC 9250 section 4.5).

use crate::encrypted_clients::{IPV4, NAME, configuration, debian_lab, queries};
use serde_json::Value;
use sixfold_interop::{CommandOutput, Debian13, Lab, SERVER_NAME, Sixfold, address};
use std::net::Ipv6Addr;

/// Client on aioquic, which the folder of the test gets.
const CLIENT: &str = include_str!("doq.py");

/// Handshakes with unvalidated addresses that the server allows at a time: its limit `QUIC_UNVALIDATED`.
const UNVALIDATED: &str = "64";

/// Attempts at asking while the handshakes are under way. The server forgets them after 5 seconds, which a busy machine may take
/// between two programs.
const ATTEMPTS: usize = 5;

/// NOTIMP (RFC 1035 section 4.1.1): the answer to an UPDATE.
const NOTIMP: u8 = 4;

/// Runs the client on aioquic.
fn aioquic(lab: &Lab, debian: &Debian13, arguments: [&str; 2]) -> CommandOutput {
    lab.scratch.write("doq.py", CLIENT);
    let client = ["/usr/bin/python3", "/mnt/doq.py", address::GATEWAY];
    debian.run_in(&lab.client, lab.scratch.path(), &[&client[..], &arguments].concat())
}

/// Connection attempts that were told to return a token first.
fn retries(sixfold: &Sixfold) -> f64 {
    sixfold.metric("sixfold_quic_handshakes_total{result=\"retry\"}")
}

//= RFC 9250 section 5.3: requirement 100
#[test]
fn kdig_of_debian_13_returns_the_token_of_a_retry_and_gets_its_answer() {
    let Some((lab, debian, certificate)) = debian_lab() else { return };
    let sixfold = Sixfold::start(&lab, &configuration(&certificate));
    let kdig = debian.kdig(&lab.client, lab.scratch.path(), address::GATEWAY);
    let kdig = kdig.with(&format!("+quic +tls-ca=/mnt/ca.pem +tls-hostname={SERVER_NAME}"));
    let is_retried = |attempt| {
        let begun = aioquic(&lab, debian, ["unvalidated", UNVALIDATED]);
        assert!(begun.success, "attempt {attempt}: {}", begun.stderr);
        let before = retries(&sixfold);
        let answer = kdig.ask(NAME, "AAAA");
        assert_eq!(answer.data("AAAA"), [Lab::embedded(IPV4)], "{}", answer.text);
        assert_eq!(answer.transport, "QUIC", "{}", answer.text);
        retries(&sixfold) > before
    };
    assert!((0..ATTEMPTS).any(is_retried), "kdig got no Retry in {ATTEMPTS} attempts");
}

//= RFC 9250 section 4.5: requirement 93
#[test]
fn aioquic_gets_answers_to_a_query_in_0_rtt_data_and_to_an_update_after_the_handshake() {
    let Some((lab, debian, certificate)) = debian_lab() else { return };
    let sixfold = Sixfold::start(&lab, &configuration(&certificate));
    let ran = aioquic(&lab, debian, ["early", NAME]);
    assert!(ran.success, "{}", ran.stderr);
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let [first, second] = &lines[..] else { panic!("{}", ran.stdout) };
    assert_eq!((&first["early_data_accepted"], &first["session_resumed"]), (&false.into(), &false.into()));
    assert_eq!((&second["early_data_accepted"], &second["session_resumed"]), (&true.into(), &true.into()));

    let embedded: Ipv6Addr = Lab::embedded(IPV4).parse().expect("an address");
    let hex = embedded.octets().map(|octet| format!("{octet:02x}")).concat();
    let answer = |record: &Value, number: usize| record["answers"][number].as_str().expect("hex").to_owned();
    for answer in [answer(first, 0), answer(second, 0)] {
        // ID 0; the flags QR, RD and RA, RCODE 0.
        assert!(answer.starts_with("00008180") && answer.ends_with(&hex), "{answer}");
    }
    // The flags end with the RCODE.
    assert!(answer(second, 1)[4..8].ends_with(&format!("{NOTIMP:x}")), "{second}");
    let early = |result| sixfold.metric(&format!("sixfold_quic_early_queries_total{{result=\"{result}\"}}"));
    // The two queries and the UPDATE; of the messages in 0-RTT data, the query at once.
    assert_eq!((queries(&sixfold, "quic"), early("answered"), early("deferred")), (3.0, 1.0, 1.0));
}
