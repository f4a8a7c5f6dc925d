//! A server that listens on all addresses must answer from the address that was asked, or clients discard the answer.

use sixfold_interop::{Authority, Capture, Configuration, Kdig, Lab, Program, Sixfold, address};

/// Addresses of the gateway: the kernel would not choose the second one of each family by itself.
const GATEWAY: [&str; 5] = [address::GATEWAY, "2001:db8:c::2", "2001:db8:c::3", "192.0.2.1", "192.0.2.2"];

/// Queries to each address.
const EACH: usize = 4;

#[test]
fn answers_come_from_the_address_that_was_asked() {
    let Some(lab) = Lab::new(&["nsd", "dumpcap", "tshark"]) else { return };
    lab.gateway.configure(
        "addr add 2001:db8:c::2/64 dev lan nodad\naddr add 2001:db8:c::3/128 dev lo nodad\n\
         addr add 192.0.2.1/24 dev lan\naddr add 192.0.2.2/24 dev lan",
    );
    lab.client.configure("addr add 192.0.2.10/24 dev lan\nroute add 2001:db8:c::3/128 via 2001:db8:c::1");
    let _authority = Authority::of_lab(Program::Nsd, &lab);
    let _sixfold = Sixfold::start(&lab, &Configuration::forwarding_to(&[address::FIRST]));
    let capture = Capture::start(&lab, &lab.client);
    for server in GATEWAY {
        for transport in ["+notcp", "+tcp"] {
            let kdig = Kdig::new(&lab.client, server).with(transport);
            for number in 0..EACH {
                let answer = kdig.ask(&format!("h{number}.lab.test"), "AAAA");
                assert_eq!(answer.data("AAAA").len(), 1, "{server}: {}", answer.text);
            }
        }
    }
    let capture = capture.finish(&lab);
    assert_eq!(capture.malformed(), "");
    let packets = capture.packets();
    for server in GATEWAY {
        let asked: Vec<_> = packets.iter().filter(|packet| !packet.response && packet.to == server).collect();
        assert!(asked.len() >= EACH, "{server}: {asked:?}");
        for question in asked {
            let answers = packets.iter().filter(|packet| {
                packet.response && packet.to_port == question.from_port && packet.id == question.id
            });
            let from: Vec<_> = answers.map(|packet| (packet.from.as_str(), packet.from_port)).collect();
            assert_eq!(from, [(server, 53)], "{question:?}");
        }
    }
}
