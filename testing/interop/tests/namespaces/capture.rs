//! Values that an off-path attacker has to guess (RFC 5452), as seen on the wire.

use crate::stream::ask_hosts;
use sixfold_interop::{Authority, Capture, Configuration, Finished, Lab, Program, Sixfold, address, zones};
use std::collections::BTreeSet;

/// Queries of the client; half of them cause two to the upstream.
const QUESTIONS: u32 = zones::HOSTS;

/// Distance of two ports drawn from the whole range: five of them lie closer together once in a million runs.
const APART: u16 = 1000;

#[test]
fn source_ports_message_ids_and_letter_case_towards_the_upstream_are_random() {
    let Some(lab) = Lab::new(&["nsd", "dumpcap", "tshark"]) else { return };
    let _authority = Authority::of_lab(Program::Nsd, &lab);
    let _sixfold = Sixfold::start(&lab, &Configuration::forwarding_to(&[address::FIRST]).without_cache());
    let capture = Capture::start(&lab, &lab.gateway);
    for _ in 0..3 {
        ask_hosts(&lab.kdig(), 0, QUESTIONS, |_| {});
    }
    let capture = capture.finish(&lab);
    assert_eq!(capture.malformed(), "");
    let packets = capture.packets();
    let asked: Vec<_> =
        packets.iter().filter(|packet| !packet.response && packet.to == address::FIRST).collect();
    // Three rounds, and the A lookup of every AAAA query: 400 x 3 x 1.5.
    assert!(asked.len() >= 3 * QUESTIONS as usize * 3 / 2, "{}", asked.len());

    let ports: BTreeSet<u16> = Finished::source_ports(&packets, address::FIRST);
    let (first, last) = (ports.first().expect("some"), ports.last().expect("some"));
    assert!(ports.len() >= 5 && last - first > APART, "{ports:?}");
    let steps: BTreeSet<u16> = ports.iter().zip(ports.iter().skip(1)).map(|(a, b)| b - a).collect();
    assert!(steps.len() > 1, "equal steps between ports: {ports:?}");

    // 1,800 of 65,536 values at random: some 1,775 different ones.
    let ids: BTreeSet<&str> = asked.iter().map(|packet| packet.id.as_str()).collect();
    assert!(ids.len() > asked.len() * 9 / 10, "{} of {}", ids.len(), asked.len());

    // Each of these names has some letters, more than 14,000 in all. A letter is a capital as often as not.
    let letters: Vec<char> =
        asked.iter().flat_map(|packet| packet.name.chars()).filter(char::is_ascii_alphabetic).collect();
    let large = letters.iter().filter(|letter| letter.is_ascii_uppercase()).count();
    assert!((letters.len() * 2 / 5..letters.len() * 3 / 5).contains(&large), "{large} of {}", letters.len());
    // The client gets the letter case of its own query.
    let told = packets.iter().filter(|packet| packet.response && packet.to == address::CLIENT);
    let mut count = 0;
    for packet in told {
        assert_eq!(packet.name, packet.name.to_ascii_lowercase());
        count += 1;
    }
    assert!(count >= 3 * QUESTIONS, "{count}");
}
