//! Programs of others as clients of the encrypted listeners: stubby and systemd-resolved, which serve the programs of their machine,
//! and kdig of Debian 13, which asks over QUIC.

use sixfold_interop::{
    Capture, Certificate, Configuration, Debian13, Kdig, Lab, Process, SERVER_NAME, Signal, Sixfold, address,
};

/// Name in the local data of the server, which has an A record only.
pub const NAME: &str = "nas.home";

/// Address of [`NAME`].
pub const IPV4: &str = "198.51.100.7";

/// Octets of a TLS 1.3 record beside the message: its length, the type of the content, the authentication tag.
const RECORD_OCTETS: u32 = 2 + 1 + 16;

/// Lines of the configuration with all encrypted listeners.
pub fn encrypted_listeners(certificate: &Certificate) -> String {
    format!(
        "[tls]\ncertificate = {:?}\nkey = {:?}\nlisten-dot = [\"[::]:853\", \"0.0.0.0:853\"]\n\
         listen-doh = [\"[::]:443\", \"0.0.0.0:443\"]\nlisten-doq = [\"[::]:853\"]\n",
        certificate.certificate(),
        certificate.key()
    )
}

/// Configuration with all encrypted listeners, and [`NAME`].
pub fn configuration(certificate: &Certificate) -> Configuration {
    let records = format!("[local]\nrecords = [\"{NAME}. 60 IN A {IPV4}\"]\n");
    Configuration::forwarding_to(&[address::FIRST]).dns64(&(records + &encrypted_listeners(certificate)))
}

/// A lab with programs of Debian 13, and a certificate in its folder. `None` if this machine cannot have them, after printing the reason.
pub fn debian_lab() -> Option<(Lab, &'static Debian13, Certificate)> {
    let lab = Lab::new(&["openssl", "curl"])?;
    let debian = Debian13::get()?;
    let certificate = Certificate::new(lab.scratch.path());
    Some((lab, debian, certificate))
}

/// Queries of clients over IPv6 so far, by transport.
pub fn queries(sixfold: &Sixfold, transport: &str) -> f64 {
    sixfold.metric(&format!("sixfold_queries_total{{transport=\"{transport}\",family=\"ipv6\"}}"))
}

/// Connections over TLS that were accepted.
fn connections(sixfold: &Sixfold) -> f64 {
    sixfold.metric("sixfold_stream_accepted_total{transport=\"tls\"}")
}

/// Asks for the AAAA record of [`NAME`] at a server that runs on the client's machine.
fn ask_locally(lab: &Lab, server: &str, port: u16) -> sixfold_interop::Answer {
    Kdig::new(&lab.client, server).with(&format!("-p {port}")).ask(NAME, "AAAA")
}

/// Starts stubby with the strict profile (RFC 8310 section 5), which trusts the server by these lines, at a port of the client.
fn start_stubby(lab: &Lab, port: u16, trust: &str) -> Process {
    let text = format!(
        "resolution_type: GETDNS_RESOLUTION_STUB\ndns_transport_list:\n  - GETDNS_TRANSPORT_TLS\n\
         tls_authentication: GETDNS_AUTHENTICATION_REQUIRED\ntls_query_padding_blocksize: 128\nidle_timeout: 60000\n\
         listen_addresses:\n  - 127.0.0.1@{port}\nupstream_recursive_servers:\n  - address_data: {}\n{trust}",
        address::GATEWAY
    );
    let file = lab.scratch.write(&format!("stubby-{port}.yml"), &text);
    let log = lab.scratch.path().join(format!("stubby-{port}.log"));
    let mut stubby = lab.client.start(&["stubby", "-v", "7", "-C", &file.to_string_lossy()], &log);
    let socket = format!("127.0.0.1:{port}");
    stubby.expect("stubby listens", |_| lab.client.run_checked(&["ss", "-lun"]).contains(&socket));
    stubby
}

#[test]
fn stubby_trusts_the_server_by_name_and_by_pin_and_pads_on_a_connection_that_stays() {
    let Some(lab) = Lab::new(&["stubby", "openssl", "curl", "dumpcap", "tshark", "ss"]) else { return };
    let certificate = Certificate::new(lab.scratch.path());
    let sixfold = Sixfold::start(&lab, &configuration(&certificate));
    let by_name =
        |name: &str| format!("    tls_auth_name: \"{name}\"\ntls_ca_file: \"{}\"\n", certificate.authority());
    let by_pin =
        |pin: &str| format!("    tls_pubkey_pinset:\n      - digest: \"sha256\"\n        value: {pin}\n");
    let other_pin = Certificate::new(&lab.scratch.directory("other")).pin();
    let expected = [Lab::embedded(IPV4)];

    let capture = Capture::start(&lab, &lab.gateway);
    let _stubby = start_stubby(&lab, 5301, &by_name(SERVER_NAME));
    for _ in 0..5 {
        let answer = ask_locally(&lab, "127.0.0.1", 5301);
        assert_eq!(answer.data("AAAA"), expected, "{}", answer.text);
    }
    assert_eq!((queries(&sixfold, "tls"), connections(&sixfold)), (5.0, 1.0));
    // RFC 8467 section 4.1: blocks of 128 octets for queries, of 468 for responses. The lengths before the messages take 2.
    // A record of the handshake may have the length by chance.
    let [responses, asked] = capture.finish(&lab).tls_records();
    let padded = |records: &[u32], block: u32| {
        records.iter().filter(|&&octets| octets == RECORD_OCTETS + block).count() >= 5
    };
    assert!(padded(&asked, 128) && padded(&responses, 468), "{asked:?} {responses:?}");

    let trusts = [by_pin(&certificate.pin()), by_name("other.example"), by_pin(&other_pin)];
    let mut failures = 0;
    for (trust, port) in trusts.iter().zip(5302..) {
        let mut stubby = start_stubby(&lab, port, trust);
        let answer = ask_locally(&lab, "127.0.0.1", port);
        match answer.status.as_str() {
            "NOERROR" => assert_eq!((answer.data("AAAA"), port), (vec![expected[0].as_str()], 5302)),
            status => {
                assert!(status == "SERVFAIL" && port != 5302, "{trust}: {}\n{}", answer.text, stubby.log());
                failures += 1;
            }
        }
        stubby.kill();
    }
    assert_eq!((failures, queries(&sixfold, "tls")), (2, 6.0));
}

#[test]
fn systemd_resolved_asks_over_tls_only_and_serves_its_machine() {
    let Some((lab, debian, certificate)) = debian_lab() else { return };
    let sixfold = Sixfold::start(&lab, &configuration(&certificate));
    let settings = "run/systemd/resolved.conf.d/tls.conf";
    std::fs::create_dir_all(lab.scratch.path().join(settings).parent().expect("a folder")).expect("a folder");
    let text = format!(
        "[Resolve]\nDNS=[{}]:853#{SERVER_NAME}\nFallbackDNS=\nDomains=~.\nDNSOverTLS=yes\nDNSSEC=no\nLLMNR=no\nMulticastDNS=no\n",
        address::GATEWAY
    );
    lab.scratch.write(settings, &text);
    let argv = ["/usr/lib/systemd/systemd-resolved"];
    let environment = ["SSL_CERT_FILE=/mnt/ca.pem", "SYSTEMD_LOG_LEVEL=debug"];
    let log = lab.scratch.path().join("resolved.log");
    let mut resolved = debian.start_with(&lab.client, lab.scratch.path(), &environment, &argv, &log);
    resolved.expect("systemd-resolved listens", |log| log.contains("Creating stub listener"));
    let answer = ask_locally(&lab, "127.0.0.53", 53);
    assert_eq!(answer.data("AAAA"), [Lab::embedded(IPV4)], "{}\n{}", answer.text, resolved.log());
    assert!(queries(&sixfold, "tls") >= 1.0);
    for transport in ["udp", "tcp"] {
        assert_eq!(queries(&sixfold, transport).to_bits(), 0.0f64.to_bits(), "{transport}");
    }
    // Its messages go to the machine's journal, unless it has none.
    resolved.stop(Signal::TERM);
}

#[test]
fn kdig_of_debian_13_asks_over_tls_https_and_quic_and_refuses_another_name() {
    let Some((lab, debian, certificate)) = debian_lab() else { return };
    let sixfold = Sixfold::start(&lab, &configuration(&certificate));
    let kdig = debian.kdig(&lab.client, lab.scratch.path(), address::GATEWAY).with("+tls-ca=/mnt/ca.pem");
    for (option, transport) in
        [("+tls", "tls"), ("+https", "https"), ("+https +https-get", "https"), ("+quic", "quic")]
    {
        let trusting = kdig.clone().with(option).with(&format!("+tls-hostname={SERVER_NAME}"));
        // Two queries, on connections of their own.
        let answers = trusting.ask_all(&[(NAME, "AAAA"), (NAME, "A")]);
        assert_eq!(answers.len(), 2, "{option}: {answers:?}");
        assert_eq!(answers[0].data("AAAA"), [Lab::embedded(IPV4)], "{option}: {}", answers[0].text);
        assert_eq!(answers[1].data("A"), [IPV4], "{option}: {}", answers[1].text);
        assert_eq!(answers[0].transport.to_lowercase(), transport, "{}", answers[0].text);
        let other = kdig.clone().with(option).with("+tls-hostname=other.example");
        assert!(other.ask_all(&[(NAME, "AAAA")]).is_empty(), "{option}");
    }
    let asked = ["tls", "https", "quic", "udp", "tcp"].map(|transport| queries(&sixfold, transport));
    assert_eq!(asked, [2.0, 4.0, 2.0, 0.0, 0.0]);
}
