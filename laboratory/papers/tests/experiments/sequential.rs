//! Questions in a row: round trips, packets and octets by arithmetic.

use core::time::Duration;
use netem::{Delay, Impairments};
use sixfold_papers::sequential::{Parameters, Sequence, Transport, run};

const QUESTIONS: u32 = 20;

/// A header and the root name with type and class, 17 octets.
const QUESTION: [u8; 17] = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];

/// Answers with the question and 83 octets more, 100 in all.
fn respond(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer.resize(100, 0);
    answer
}

fn ask(transport: Transport, one_way: Duration) -> Sequence {
    let link = Impairments { delay: Delay { mean: one_way, ..Delay::default() }, ..Impairments::default() };
    let parameters = Parameters { transport, link, questions: QUESTIONS, seed: 1, question: &QUESTION };
    run(&parameters, &mut respond).expect("answers")
}

#[test]
fn each_transport_takes_its_round_trips() {
    for one_way in [Duration::from_micros(20), Duration::from_micros(32_500)] {
        let round_trip = 2 * one_way;
        for (transport, round_trips) in [
            (Transport::Udp, QUESTIONS),
            (Transport::UdpWithCookie, QUESTIONS),
            (Transport::Ttcp, QUESTIONS),
            (Transport::TtcpLateFin, QUESTIONS),
            (Transport::TtcpCold, 2 * QUESTIONS),
            (Transport::Tcp, 2 * QUESTIONS),
            (Transport::TcpEarlyFin, 2 * QUESTIONS),
            // One handshake for all.
            (Transport::TcpKept, 1 + QUESTIONS),
        ] {
            let sequence = ask(transport, one_way);
            assert_eq!(sequence.total, round_trips * round_trip, "{transport:?}");
            assert_eq!(sequence.times.iter().sum::<Duration>(), sequence.total, "{transport:?}");
        }
    }
}

#[test]
fn each_transport_sends_its_packets() {
    for (transport, packets) in [
        (Transport::Udp, 2 * QUESTIONS),
        (Transport::UdpWithCookie, 2 * QUESTIONS),
        // RFC 1644 section 2: SYN with data and FIN, SYN,ACK with data and FIN, ACK.
        (Transport::Ttcp, 3 * QUESTIONS),
        // The FIN of the server and its acknowledgment apart.
        (Transport::TtcpLateFin, 5 * QUESTIONS),
        // SYN with data, SYN,ACK, ACK, then the server's acknowledgment of the FIN, its answer, and the last ACK.
        (Transport::TtcpCold, 6 * QUESTIONS),
        // SYN, SYN,ACK, data with FIN, ACK, answer with FIN, ACK.
        (Transport::TcpEarlyFin, 6 * QUESTIONS),
        // SYN, SYN,ACK, ACK, question, answer, FIN, ACK, FIN, ACK.
        (Transport::Tcp, 9 * QUESTIONS),
        // SYN and SYN,ACK, four at the end, and two for each question: each acknowledges the packet before it.
        (Transport::TcpKept, 2 + 4 + 2 * QUESTIONS),
    ] {
        assert_eq!(ask(transport, Duration::from_millis(5)).packets, u64::from(packets), "{transport:?}");
    }
}

#[test]
fn octets_are_those_of_the_headers_and_messages() {
    let octets = |transport| ask(transport, Duration::from_millis(5)).octets / u64::from(QUESTIONS);
    // Two headers of IPv4 and UDP, 28 each, and the messages.
    assert_eq!(octets(Transport::Udp), 2 * 28 + 17 + 100);
    // An OPT record of 11 octets with an option of 4 + 24 in each message.
    assert_eq!(octets(Transport::UdpWithCookie), 2 * (28 + 39) + 17 + 100);
    // Headers of 40 octets and the length of a message, 2. Options: MSS (4) and CC with its padding (8) on both SYNs, CC.ECHO (8)
    // on the second, CC (8) on the last segment.
    assert_eq!(octets(Transport::Ttcp), 3 * 40 + (2 + 17) + (2 + 100) + (4 + 8) + (4 + 8 + 8) + 8);
}

#[test]
fn a_run_without_questions_or_with_too_many_is_refused() {
    let parameters = |questions| Parameters {
        transport: Transport::Udp,
        link: Impairments::default(),
        questions,
        seed: 1,
        question: &QUESTION,
    };
    for questions in [0, 50_001] {
        let error = run(&parameters(questions), &mut respond).unwrap_err();
        assert!(error.contains("expected 1 to 50000"), "{error}");
    }
}
