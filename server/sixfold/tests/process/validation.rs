//! Validation (`dns64.dnssec = "validate"`) from a configuration file to the client, with signed zones behind an upstream that passes on
//! signatures.

use crate::daemon::{Daemon, PREFIX, Setup, success, wait_until};
use crate::scrape::{Scrape, request};
use kit::message::Query;
use kit::upstream::{Asked, Replies, Upstream};
use kit::{Folder, client};
use signed_zones::name::text;
use signed_zones::{Anchor, Kind, Reply, Store, World, faults, rtype};
use std::collections::HashSet;
use std::fmt::Write;
use std::net::Ipv6Addr;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::{Flags, Message, Rcode, Section, Type};

/// AD in a query (RFC 6840 section 5.7), beside RD.
const RD_AD: u16 = 0x0120;

/// Places in [`signed_zones::QUESTIONS`].
const BOTH: usize = 0;
const BOTH_AAAA: usize = 1;
const FOUR_AAAA: usize = 2;
const PLAIN: usize = 7;

/// Zones without a fault. Signatures hold for a day before and after now.
fn zones() -> World {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as u32;
    let fault = &faults::all()[0];
    World::at(&Store::new(4), Kind::Nsec, fault, now)
}

/// Upstream that gives the replies of zones on, after a change of each.
fn changing(change: impl Fn(&[u8], u16, &mut Reply) + Clone + Send + 'static) -> Upstream {
    // Keys are shared within a thread only, and so each of the upstream's makes the same zones for itself.
    thread_local! { static ZONES: World = zones(); }
    Upstream::start(move |asked: &Asked<'_>, replies: &mut Replies| {
        let name = kit::message::name(asked.name);
        let mut reply = ZONES.with(|zones| zones.reply(&name, asked.rtype));
        change(&name, asked.rtype, &mut reply);
        let mut octets = reply.octets(&name, asked.rtype);
        octets[..2].copy_from_slice(&asked.message[..2]);
        let question = 12..12 + name.len();
        octets[question.clone()].copy_from_slice(&asked.message[question]);
        replies.now(octets);
    })
}

/// Upstream that changes the addresses of type A of the name `forged` on the way.
fn upstream(forged: Vec<u8>) -> Upstream {
    changing(move |name, qtype, reply| {
        if name == forged && qtype == rtype::A {
            forge(reply);
        }
    })
}

/// Upstream that gives replies on without signatures and proofs.
fn stripping() -> Upstream {
    changing(|_, _, reply| {
        for section in [&mut reply.answer, &mut reply.authority] {
            section.retain(|record| !matches!(record.rtype, rtype::RRSIG | rtype::NSEC | rtype::NSEC3));
        }
    })
}

fn forge(reply: &mut Reply) {
    reply.answer.iter_mut().filter(|record| record.rtype == rtype::A).for_each(|record| record.rdata[3] ^= 1);
}

/// Text of an anchor file.
fn anchor_file(zones: &World) -> String {
    let mut file = String::new();
    for anchor in zones.anchors() {
        let Anchor::Ds(zone, rdata) = anchor else { panic!("a world without a fault has DS anchors") };
        let [high, low, algorithm, digest_type, digest @ ..] = &rdata[..] else { panic!("a DS record") };
        let tag = u16::from_be_bytes([*high, *low]);
        write!(file, "{} IN DS {tag} {algorithm} {digest_type} ", text(zone)).unwrap();
        digest.iter().for_each(|octet| write!(file, "{octet:02X}").unwrap());
        file.push('\n');
    }
    file
}

/// Answer to a client with AD, and with DO if it is said.
struct Answer {
    rcode: Rcode,
    has_ad: bool,
    addresses: HashSet<Ipv6Addr>,
    ede: Option<u16>,
}

fn ask(server: &Daemon, (name, qtype): &(Vec<u8>, u16), dnssec_ok: bool) -> Answer {
    let query = Query::new(&text(name), *qtype).flags(RD_AD).opt(4096, 0, dnssec_ok, &[]).octets();
    let socket = client::udp(client::unspecified(server.v4()), server.v4());
    let octets = client::ask(&socket, &query);
    let message = Message::parse(&octets).unwrap();
    let addresses = message.records(Section::Answer).filter_map(|record| record.address6());
    Answer {
        rcode: message.rcode(),
        has_ad: message.flags().contains(Flags::AD),
        addresses: addresses.map(Ipv6Addr::from).collect(),
        ede: message.opt().and_then(|opt| opt.ede().next()).map(|(code, _)| code),
    }
}

/// Address of 192.0.2.0/24 within the prefix.
fn embedded(last: u8) -> Ipv6Addr {
    let prefix: Ipv6Addr = PREFIX.split('/').next().unwrap().parse().unwrap();
    Ipv6Addr::from(u128::from(prefix) | u128::from(u32::from_be_bytes([192, 0, 2, last])))
}

/// Server that validates from the anchors of the zones, with more lines of configuration.
fn server(zones: &World, upstream: &Upstream, folder: &Folder, lines: &[&str]) -> Daemon {
    let anchors = folder.file("anchors");
    std::fs::write(&anchors, anchor_file(zones)).unwrap();
    let setup = Setup::new(upstream.address)
        .line("dns64.dnssec = \"validate\"")
        .line(&format!("dnssec.trust-anchors = \"{}\"", anchors.display()))
        .line("upstream.mix-case = false")
        .metrics();
    lines.iter().fold(setup, |setup, line| setup.line(line)).start()
}

#[test]
fn answers_are_validated_from_a_file_of_anchors_and_synthesis_follows_the_verdict() {
    let zones = zones();
    let question = |place| zones.question(place);
    let (upstream, folder) = (upstream(question(BOTH).0), Folder::for_everybody());
    let server = server(&zones, &upstream, &folder, &["dnssec.threads = 1"]);
    for dnssec_ok in [true, false] {
        let secure = ask(&server, &question(BOTH_AAAA), dnssec_ok);
        assert_eq!((secure.rcode, secure.has_ad), (Rcode::NOERROR, true));
        assert_eq!(secure.addresses, HashSet::from(["2001:db8::1".parse().unwrap()]));
    }

    // The proof that there is no AAAA is secure, and so are the A records.
    let synthesized = ask(&server, &question(FOUR_AAAA), true);
    assert_eq!((synthesized.rcode, synthesized.has_ad), (Rcode::NOERROR, true));
    assert_eq!(synthesized.addresses, HashSet::from([embedded(4)]));

    let unsigned = ask(&server, &(question(PLAIN).0, rtype::AAAA), true);
    assert_eq!((unsigned.rcode, unsigned.has_ad), (Rcode::NOERROR, false));
    assert_eq!(unsigned.addresses, HashSet::from([embedded(99)]));

    // RFC 8914 section 4.7: DNSSEC Bogus.
    let forged = ask(&server, &question(BOTH), true);
    assert_eq!((forged.rcode, forged.has_ad, forged.ede), (Rcode::SERVFAIL, false, Some(6)));

    let scrape = Scrape::of(server.metrics);
    let count = |result| scrape.value("dnssec_validations_total", &[("result", result)]);
    assert!(count("secure") >= 3.0 && count("insecure") >= 1.0 && count("bogus") >= 1.0);
}

#[test]
fn with_permissive_bogus_data_are_answered_without_ad() {
    let zones = zones();
    let (upstream, folder) = (upstream(zones.question(BOTH).0), Folder::for_everybody());
    let server = server(&zones, &upstream, &folder, &["dnssec.permissive = true"]);
    let forged = ask(&server, &zones.question(BOTH), true);
    assert_eq!((forged.rcode, forged.has_ad), (Rcode::NOERROR, false));
}

#[test]
fn a_negative_anchor_and_ctl_explain_agree_that_a_zone_is_not_validated() {
    let zones = zones();
    let (upstream, folder) = (upstream(zones.question(BOTH).0), Folder::for_everybody());
    let negative = format!("dnssec.negative-trust-anchors = [\"{}\"]", text(zones.apex()));
    let server = server(&zones, &upstream, &folder, &[&negative]);
    let (name, _) = zones.question(FOUR_AAAA);
    let answer = ask(&server, &(name.clone(), Type::AAAA.0), true);
    assert_eq!((answer.rcode, answer.has_ad), (Rcode::NOERROR, false));
    assert_eq!(answer.addresses, HashSet::from([embedded(4)]));
    let told = success(&server.ctl(&["explain", &text(&name)]));
    assert!(told.contains(&embedded(4).to_string()), "{told}");
}

// RFC 8914 section 4.11: RRSIGs Missing.
#[test]
fn if_all_forwarders_strip_signatures_everybody_is_told_and_the_server_is_not_ready() {
    let zones = zones();
    let (upstream, folder) = (stripping(), Folder::for_everybody());
    let server = server(&zones, &upstream, &folder, &[]);
    assert_eq!(success(&server.ctl(&["health"])), "serving\n");
    let answer = ask(&server, &zones.question(FOUR_AAAA), true);
    assert_eq!((answer.rcode, answer.addresses.len(), answer.ede), (Rcode::SERVFAIL, 0, Some(10)));
    let told = success(&server.ctl(&["upstreams"]));
    assert!(told.contains(" strips, ") && told.contains("because it strips signatures"), "{told}");
    let json: serde_json::Value =
        serde_json::from_str(&success(&server.ctl(&["upstreams", "--json"]))).unwrap();
    assert_eq!(json["state"], "strips", "{json}");
    let health = server.ctl(&["health"]);
    assert_eq!(health.status.code(), Some(1), "{health:?}");
    let ready = request(server.metrics, "GET", "/readyz");
    assert!(ready.status == 503 && ready.body.contains("signatures"), "{}", ready.body);
    let has_line = || server.process.log().contains("no upstream passes on signatures");
    wait_until("the log says so", has_line);
}

/// Key tags of the anchors of zones.
fn anchor_tags(zones: &World) -> Vec<u16> {
    let tag = |anchor: &Anchor| match anchor {
        Anchor::Ds(_, rdata) => u16::from_be_bytes([rdata[0], rdata[1]]),
        _ => panic!("a world without a fault has DS anchors"),
    };
    zones.anchors().iter().map(tag).collect()
}

#[test]
fn explain_shows_the_chain_link_by_link_and_where_it_ends() {
    let zones = zones();
    let (upstream, folder) = (upstream(zones.question(BOTH).0), Folder::for_everybody());
    let server = server(&zones, &upstream, &folder, &[]);
    let explain = |name: &[u8], qtype: &str| {
        success(&server.ctl(&["explain", &text(name), "--type", qtype, "--dnssec"]))
    };
    let apex = text(zones.apex());

    let (name, _) = zones.question(FOUR_AAAA);
    let secure = explain(&name, "AAAA");
    for tag in anchor_tags(&zones) {
        assert!(secure.contains(&format!("trust anchor: {tag} ")), "{tag}: {secure}");
    }
    assert!(secure.contains(&format!("\n  {apex} secure\n    DS: ")), "{secure}");
    assert!(secure.contains(&format!("\n    {apex} DNSKEY signed by ")), "{secure}");
    for qtype in ["AAAA", "A"] {
        assert!(secure.contains(&format!("\n  {} {qtype} secure\n", text(&name))), "{secure}");
    }
    assert!(!secure.contains("the chain ends at"), "{secure}");
    assert!(secure.contains("AD is set: every lookup is secure"), "{secure}");

    let (name, _) = zones.question(PLAIN);
    let insecure = explain(&name, "AAAA");
    assert!(insecure.contains(" insecure: the delegation has no DS record\n"), "{insecure}");
    assert!(insecure.contains("the chain ends at "), "{insecure}");
    assert!(insecure.contains("AD is clear: not every lookup is secure"), "{insecure}");

    let (name, _) = zones.question(BOTH);
    let bogus = explain(&name, "A");
    assert!(bogus.contains(&format!("\n  {} A bogus: a signature is wrong\n", text(&name))), "{bogus}");
    assert!(bogus.contains(&format!("\n    {} A signed by ", text(&name))), "{bogus}");
    assert!(bogus.contains("answer    SERVFAIL"), "{bogus}");
}

// RFC 4035 section 5.5: what cannot be validated is not used. The upstream has answered, and the failure is made here.
#[test]
fn keys_that_cannot_be_had_are_the_failure_of_validation_and_not_of_the_upstream() {
    let zones = zones();
    let refusing = changing(|_, qtype, reply| {
        if qtype == rtype::DNSKEY {
            // REFUSED.
            *reply = Reply { rcode: 5, ..Reply::default() };
        }
    });
    let folder = Folder::for_everybody();
    let server = server(&zones, &refusing, &folder, &[]);
    let (name, _) = zones.question(FOUR_AAAA);
    let answer = ask(&server, &(name.clone(), rtype::AAAA), true);
    assert_eq!((answer.rcode, answer.addresses.len()), (Rcode::SERVFAIL, 0));
    let told = success(&server.ctl(&["explain", &text(&name)]));
    assert!(told.contains(" from dns64.dnssec\n"), "{told}");
    assert!(told.contains("validation has no proof that the AAAA lookup may fail"), "{told}");
    assert!(!told.contains("bogus") && !told.contains(" ,"), "{told}");
    assert!(server.stat("not_synthesized_total{reason=\"unproven\"}") >= 1.0);
    assert_eq!(server.stat("not_synthesized_total{reason=\"bogus\"}"), 0.0);
}

#[test]
fn explain_tells_programs_the_chain_in_fields() {
    let zones = zones();
    let (upstream, folder) = (upstream(Vec::new()), Folder::for_everybody());
    let server = server(&zones, &upstream, &folder, &[]);
    let (name, _) = zones.question(BOTH);
    let told = success(&server.ctl(&["explain", &text(&name), "--type", "A", "--dnssec", "--json"]));
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let chain = told["chain"].as_array().unwrap();
    let tags: Vec<u64> = chain
        .iter()
        .flat_map(|link| link["anchors"].as_array().unwrap())
        .map(|anchor| anchor["key_tag"].as_u64().unwrap())
        .collect();
    assert_eq!(tags, anchor_tags(&zones).into_iter().map(u64::from).collect::<Vec<_>>());
    let own = chain.iter().find(|link| link["zone"] == text(zones.apex()).as_str()).unwrap();
    assert_eq!(own["state"], "secure");
    // RFC 4035 section 5.2: the key that a DS record names signs the keys of the zone.
    let signers: Vec<u64> = own["key_signatures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["key_tag"].as_u64().unwrap())
        .collect();
    assert!(signers.contains(&own["ds"][0]["key_tag"].as_u64().unwrap()), "{own}");
    let verdicts = told["verdicts"].as_array().unwrap();
    assert_eq!(verdicts.len(), 1);
    assert_eq!(
        (&verdicts[0]["status"], &verdicts[0]["ends_at"]),
        (&"secure".into(), &serde_json::Value::Null)
    );
}
