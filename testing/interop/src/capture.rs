//! Packets on the wire, captured and dissected by Wireshark's tools.

use crate::lab::Lab;
use crate::namespace::Namespace;
use crate::process::{Process, Signal, run, wait_until};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Capture filter: DNS over UDP, TCP and TLS.
const FILTER: &str = "port 53 or port 853";

/// Name in the query that marks the end of a capture.
const MARK: &str = "end-of-the-capture.lab.test";

/// Fields that are read of each packet.
const FIELDS: [&str; 9] = [
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "udp.srcport",
    "udp.dstport",
    "dns.flags.response",
    "dns.id",
    "dns.qry.name",
];

/// DNS message over UDP.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Source address.
    pub from: String,
    /// Source port.
    pub from_port: u16,
    /// Destination address.
    pub to: String,
    /// Destination port.
    pub to_port: u16,
    /// QR bit.
    pub response: bool,
    /// Message ID.
    pub id: String,
    /// Name in the question, in the letter case of the packet.
    pub name: String,
}

/// Capture in progress on all devices of a namespace.
pub struct Capture {
    process: Process,
    file: PathBuf,
}

impl Capture {
    /// Starts the capture and waits until it records packets.
    pub fn start(lab: &Lab, namespace: &Namespace) -> Capture {
        let file = lab.scratch.path().join("capture.pcapng");
        let log = lab.scratch.path().join("capture.log");
        let argv = ["dumpcap", "-i", "any", "-f", FILTER, "-w", &file.to_string_lossy()];
        let mut process = namespace.start(&argv, &log);
        process.expect("dumpcap captures", |log| log.contains("File: "));
        Capture { process, file }
    }

    /// Ends the capture when it has all packets so far: a last query of the lab's client marks the end.
    pub fn finish(mut self, lab: &Lab) -> Finished {
        let (label, _) = MARK.split_once('.').expect("it has more labels than one");
        let marked = wait_until(|| {
            lab.kdig().ask_all(&[(MARK, "A")]);
            let bytes = std::fs::read(&self.file).unwrap_or_default();
            bytes.windows(label.len()).any(|window| window == label.as_bytes())
        });
        assert!(marked, "the last question is not in the capture: {}", self.process.log());
        let status = self.process.stop(Signal::INT);
        assert!(status.success(), "dumpcap: {status}: {}", self.process.log());
        Finished { file: self.file }
    }
}

/// Finished capture.
pub struct Finished {
    file: PathBuf,
}

impl Finished {
    /// Packets that Wireshark calls malformed, one per line; empty if there are none. IP checksums are ignored:
    /// virtual Ethernet leaves them to the receiver.
    pub fn malformed(&self) -> String {
        self.tshark(&["-Y", "_ws.malformed || _ws.expert.group == \"Malformed\""])
    }

    /// All DNS messages over UDP except those of the end mark, of which the last may be missing.
    pub fn packets(&self) -> Vec<Packet> {
        let mut arguments = vec!["-Y", "dns && udp", "-T", "fields", "-E", "occurrence=f"];
        FIELDS.iter().for_each(|field| arguments.extend(["-e", field]));
        let packets = self.tshark(&arguments).lines().filter_map(read).collect::<Vec<_>>();
        packets.into_iter().filter(|packet| !packet.name.eq_ignore_ascii_case(MARK)).collect()
    }

    /// Lengths of the TLS records with data between port 853 and a peer, in octets: those from the port, and those to it.
    pub fn tls_records(&self) -> [Vec<u32>; 2] {
        ["tcp.srcport == 853", "tcp.dstport == 853"].map(|direction| {
            let filter = format!("{direction} && tls.record.opaque_type == 23");
            // No dissector of DNS above: the octets stay encrypted.
            let fields =
                ["-d", "tcp.port==853,tls", "-Y", &filter, "-T", "fields", "-e", "tls.record.length"];
            let output = self.tshark(&fields);
            output.split([',', '\n', '\t']).filter_map(|length| length.trim().parse().ok()).collect()
        })
    }

    /// Source ports of queries to `server`.
    pub fn source_ports(packets: &[Packet], server: &str) -> BTreeSet<u16> {
        packets
            .iter()
            .filter(|packet| !packet.response && packet.to == server)
            .map(|packet| packet.from_port)
            .collect()
    }

    fn tshark(&self, arguments: &[&str]) -> String {
        let file = self.file.to_string_lossy();
        let ran = run(&[&["tshark", "-n", "-o", "ip.check_checksum:FALSE", "-r", &file], arguments].concat());
        assert!(ran.success, "tshark: {}", ran.stderr);
        ran.stdout
    }
}

fn read(line: &str) -> Option<Packet> {
    let fields: Vec<&str> = line.split('\t').collect();
    let either = |first: usize, second: usize| {
        Some(if fields.get(first)?.is_empty() { *fields.get(second)? } else { fields[first] }.to_owned())
    };
    Some(Packet {
        from: either(0, 2)?,
        to: either(1, 3)?,
        from_port: fields.get(4)?.parse().ok()?,
        to_port: fields.get(5)?.parse().ok()?,
        response: matches!(*fields.get(6)?, "1" | "True"),
        id: (*fields.get(7)?).to_owned(),
        name: (*fields.get(8)?).to_owned(),
    })
}
