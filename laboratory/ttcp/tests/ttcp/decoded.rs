//! An independent decoder, tshark, reads the golden sequences: it finds the same flags, counts and lengths, and no fault.

use crate::network::{Network, PORT, answer, captured, server};
use core::time::Duration;
use sixfold_ttcp::{Listen, Settings, Stack};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

/// Writes packets without a link layer (LINKTYPE_RAW, 101) in the format of pcap.
fn write_capture(path: &Path, packets: &[(Duration, bool, Vec<u8>)]) {
    let mut file: Vec<u8> = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for (at, _, packet) in packets {
        let length = packet.len() as u32;
        for word in [at.as_secs() as u32, at.subsec_micros(), length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    std::fs::write(path, file).expect("a file for the capture");
}

/// The packets as tshark reads them, one line each; none if there is no tshark.
fn decode(packets: &[(Duration, bool, Vec<u8>)]) -> Option<Vec<String>> {
    let fields = ["tcp.flags.str", "tcp.len", "tcp.options.cc_value", "tcp.checksum.status", "_ws.malformed"];
    decode_fields(packets, &fields)
}

/// These fields of the packets as tshark reads them, one line each, with `|` between the fields; none if there is no tshark.
pub fn decode_fields(packets: &[(Duration, bool, Vec<u8>)], fields: &[&str]) -> Option<Vec<String>> {
    let folder = kit::Folder::new();
    let path = folder.file("packets.pcap");
    write_capture(&path, packets);
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-T", "fields", "-o", "tcp.check_checksum:TRUE", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
        }
        Err(error) => {
            kit::missing(&format!("tshark ({error})"), "apt-get install tshark");
            None
        }
    }
}

fn transactions(client: Settings, server_settings: Settings, listen: Listen) -> Network {
    let mut network = captured(client, server_settings, netem::Impairments::default(), 1);
    network.server.listen(PORT, listen).expect("a free port");
    let mut requests = HashMap::new();
    for _ in 0..2 {
        network.client.transact(network.now, server(), b"query").expect("a connection");
        let end = network.now + Duration::from_secs(1);
        network.run(end, |network, at_server, event| answer(network, at_server, &event, &mut requests));
    }
    network
}

fn settings() -> Settings {
    Settings { last_count: 100, ..Settings::default() }
}

/// A line of tshark: flags in its notation, octets, counts in the order of the options, a checksum that is right (1).
fn line(flags: &str, octets: usize, counts: &str) -> String {
    format!("{flags}|{octets}|{counts}|1|")
}

#[test]
fn tshark_reads_a_first_and_a_second_transaction() {
    let network = transactions(settings(), settings(), Listen::default());
    let Some(lines) = decode(&network.capture) else { return };
    let expected = [
        line("··········SF", 5, "101"),
        line("·······A··S·", 0, "101,101"),
        line("·······A····", 0, "101"),
        line("·······A····", 0, "101"),
        line("·······AP··F", 5, "101"),
        line("·······A····", 0, "101"),
        line("········P·SF", 5, "102"),
        line("·······AP·SF", 5, "102,102"),
        line("·······A····", 0, "102"),
    ];
    let expected: Vec<String> = expected.into_iter().collect();
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (got, expected) in lines.iter().zip(&expected) {
        // PSH is of no interest where the first SYN has it, too.
        assert_eq!(got.replace('P', "·"), expected.replace('P', "·"), "{lines:#?}");
    }
}

#[test]
fn tshark_reads_a_fallback_to_plain_tcp() {
    let plain = Settings { transactions: false, ..settings() };
    let network = transactions(settings(), plain, Listen { no_push: false, keep_syn_data: false });
    let Some(lines) = decode(&network.capture[..6]) else { return };
    let expected =
        [("SF", 5, "101"), ("AS", 0, ""), ("AF", 5, ""), ("A", 0, ""), ("AF", 5, ""), ("A", 0, "")];
    for (got, (flags, octets, counts)) in lines.iter().zip(expected) {
        let fields: Vec<&str> = got.split('|').collect();
        assert_eq!(fields[0].replace(['·', 'P'], ""), flags, "{lines:#?}");
        assert_eq!(&fields[1..], [&octets.to_string(), counts, "1", ""], "{lines:#?}");
    }
    assert_eq!(lines.len(), 6);
}

#[test]
fn tshark_reads_transactions_over_ipv6() {
    let address = |host: u16| IpAddr::from([0x2001, 2, 0, 0, 0, 0, 0, host]);
    let mut client = Stack::new(&[address(1)], settings(), 1).expect("an address for benchmarks");
    client.transact(Duration::ZERO, SocketAddr::new(address(2), PORT), b"query").expect("a connection");
    let packet = client.next_packet().expect("a SYN");
    assert_eq!(packet[0] >> 4, 6);
    let Some(lines) = decode(&[(Duration::ZERO, true, packet)]) else { return };
    let fields: Vec<&str> = lines[0].split('|').collect();
    assert_eq!(&fields[1..], ["5", "101", "1", ""]);
}
