//! Trust anchors that are followed (RFC 5011), and negative ones (RFC 7646), as operators see them: a false upstream has a zone with keys
//! that change. Hold-downs of 30 days are shown in virtual time (`server/anchors/tests`); here is what a start, a reload and an upgrade do
//! at once, each of which but the reload asks for the keys.

use crate::daemon::{Daemon, Setup, success, wait_until};
use crate::service::Service;
use kit::message::Query;
use kit::upstream::{Asked, Replies, Upstream};
use kit::{Folder, client};
use serde_json::Value;
use signed_zones::keys::{Fields, Key};
use signed_zones::{Record, Reply, Rrset, Store, rtype};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use wire::{Flags, Message, Rcode, Type};

const ZONE: &str = "roll.test.";
const HOST: &str = "host.roll.test.";

/// Replies by name and type.
type Answers = Arc<Mutex<HashMap<(String, u16), Vec<u8>>>>;

/// A zone with an AAAA record of `host`, behind a false upstream.
struct Zone {
    upstream: Upstream,
    answers: Answers,
    folder: Folder,
}

fn key(number: u8) -> Key {
    Key::new(Store::new(11).pair(number, 13, 256), true)
}

/// The key with the REVOKE bit (RFC 5011 section 3).
fn revoked(number: u8) -> Key {
    let key = key(number);
    Key { flags: key.flags | 0x80, ..key }
}

fn wire_name(text: &str) -> Vec<u8> {
    kit::message::name(text)
}

/// Records of an RRset and signatures by these keys.
fn signed(set: &Rrset, signers: &[&Key]) -> Vec<Record> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as u32;
    let mut records: Vec<Record> = set.records(&set.owner).collect();
    for key in signers {
        let fields = Fields {
            covered: set.rtype,
            algorithm: 13,
            labels: signed_zones::keys::signed_labels(&set.owner) as u8,
            ttl: set.ttl,
            expiration: now + 864_000,
            inception: now - 3_600,
            tag: key.tag(),
            signer: wire_name(ZONE),
        };
        let signature = Rrset::one(set.owner.clone(), rtype::RRSIG, set.ttl, fields.sign(set, key));
        records.extend(signature.records(&set.owner));
    }
    records
}

impl Zone {
    /// The zone has these keys, and its data are signed by one of them.
    fn start(keys: &[&Key], signers: &[&Key], data: &Key) -> Zone {
        let answers = Answers::default();
        let shared = Arc::clone(&answers);
        let upstream = Upstream::start(move |asked: &Asked<'_>, replies: &mut Replies| {
            let known = shared.lock().unwrap().get(&(asked.name.to_owned(), asked.rtype)).cloned();
            let Some(mut octets) = known else {
                return replies.now(kit::message::reply(asked.message, 0x0182, &[]));
            };
            octets[..2].copy_from_slice(&asked.message[..2]);
            let question = 12..12 + wire_name(asked.name).len();
            octets[question.clone()].copy_from_slice(&asked.message[question]);
            replies.now(octets);
        });
        let zone = Zone { upstream, answers, folder: Folder::for_everybody() };
        std::fs::create_dir(zone.folder.join("state")).unwrap();
        zone.publish(keys, signers, data);
        zone
    }

    fn publish(&self, keys: &[&Key], signers: &[&Key], data: &Key) {
        let set = Rrset {
            owner: wire_name(ZONE),
            rtype: rtype::DNSKEY,
            ttl: 3_600,
            data: keys.iter().map(|key| key.rdata()).collect::<BTreeSet<_>>(),
        };
        self.answer(ZONE, &set, signers);
        let address = "2001:db8::7".parse::<std::net::Ipv6Addr>().unwrap().octets().to_vec();
        self.answer(HOST, &Rrset::one(wire_name(HOST), rtype::AAAA, 60, address), &[data]);
    }

    fn answer(&self, name: &str, set: &Rrset, signers: &[&Key]) {
        let reply = Reply { answer: signed(set, signers), ..Reply::default() };
        let octets = reply.octets(&wire_name(name), set.rtype);
        self.answers.lock().unwrap().insert((name.to_owned(), set.rtype), octets);
    }

    fn state_file(&self) -> PathBuf {
        self.folder.join("state/keys")
    }

    fn state(&self) -> String {
        std::fs::read_to_string(self.state_file()).unwrap_or_default()
    }

    /// A server that follows the zone from these anchors.
    fn setup(&self, anchors: &[&Key]) -> Setup {
        let mut text = String::new();
        for key in anchors {
            let digest: String =
                key.ds(&wire_name(ZONE), 2)[4..].iter().map(|o| format!("{o:02X}")).collect();
            text.push_str(&format!("{ZONE} IN DS {} 13 2 {digest}\n", key.tag()));
        }
        let file = self.folder.file("anchors");
        std::fs::write(&file, text).unwrap();
        Setup::new(self.upstream.address)
            .line("dns64.dnssec = \"validate\"")
            .line(&format!("dnssec.trust-anchors = \"{}\"", file.display()))
            .line("dnssec.follow = true")
            .line(&format!("dnssec.state-file = \"{}\"", self.state_file().display()))
            .line("dnssec.threads = 1")
    }
}

/// RCODE and AD of the answer for `host`.
fn ask(server: &Daemon) -> (Rcode, bool) {
    let query = Query::new(HOST, Type::AAAA.0).flags(0x0100).opt(4096, 0, true, &[]).octets();
    let socket = client::udp(client::unspecified(server.v4()), server.v4());
    let octets = client::ask(&socket, &query);
    let message = Message::parse(&octets).unwrap();
    (message.rcode(), message.flags().contains(Flags::AD))
}

const SECURE: (Rcode, bool) = (Rcode::NOERROR, true);
const UNCHECKED: (Rcode, bool) = (Rcode::NOERROR, false);
const BOGUS: (Rcode, bool) = (Rcode::SERVFAIL, false);

fn objects(server: &Daemon) -> Vec<Value> {
    let text = success(&server.ctl(&["anchors", "--json"]));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// State of a key, by its tag; none if it is not shown.
fn state_of(server: &Daemon, tag: u16) -> Option<String> {
    let found = objects(server).into_iter().find(|one| one["key_tag"] == tag && one["record"] == "DNSKEY");
    found.map(|one| one["state"].as_str().unwrap().to_owned())
}

fn wait_for_state(server: &Daemon, tag: u16, state: &str) {
    wait_until(&format!("{tag} is {state}"), || state_of(server, tag).as_deref() == Some(state));
}

fn wait_for_log(server: &Daemon, words: &str) {
    wait_until(words, || server.process.log().contains(words));
}

#[test]
fn a_new_key_waits_a_revoked_one_is_refused_and_both_survive_a_restart() {
    let (one, two, three) = (key(1), key(2), key(3));
    let zone = Zone::start(&[&one, &three], &[&one, &three], &one);
    let server = zone.setup(&[&one, &three]).metrics().start();
    wait_for_state(&server, one.tag(), "valid");
    let text = success(&server.ctl(&["anchors"]));
    let line = format!("{ZONE} DNSKEY key tag {}, algorithm 13, valid since 2", one.tag());
    assert!(text.contains(&line), "{text}");
    wait_until("the state is saved", || zone.state().matches("state=valid").count() == 2);
    assert_eq!(ask(&server), SECURE);
    assert!(server.process.log().contains("is the one that the configured DS record names"));
    assert_eq!(server.stat("trust_anchors{state=\"valid\"}"), 2.0);
    drop(server);

    zone.publish(&[&one, &two, &three], &[&one, &three], &one);
    let server = zone.setup(&[&one, &three]).start();
    assert_eq!(state_of(&server, one.tag()).as_deref(), Some("valid"), "from the state file");
    wait_for_state(&server, two.tag(), "add-pend");
    assert!(success(&server.ctl(&["anchors"])).contains(", trusted after 30 days, 0 of them are over"));
    wait_for_log(&server, &format!("the key {} of {ZONE} is new", two.tag()));
    wait_until("the state is saved", || zone.state().contains("state=add-pend"));
    assert_eq!(ask(&server), SECURE);
    drop(server);

    // The new key signs data before it is trusted: its signature over the keys would not count, that of another one does.
    let last = revoked(1);
    zone.publish(&[&last, &two, &three], &[&last, &three], &one);
    let server = zone.setup(&[&one, &three]).start();
    wait_for_state(&server, last.tag(), "revoked");
    wait_for_log(&server, "is revoked: it is never trusted again");
    assert_eq!(state_of(&server, two.tag()).as_deref(), Some("add-pend"), "another key vouches for it");
    assert_eq!(ask(&server), BOGUS, "signed by a key that is revoked");
    wait_until("the state is saved", || zone.state().contains("state=revoked"));
    drop(server);

    // The key is not revoked in the set any more, as an attacker who has it would say.
    zone.publish(&[&one, &three], &[&one], &one);
    let server = zone.setup(&[&one, &three]).start();
    wait_for_log(&server, "no newer set that a trusted key signed");
    assert_eq!(state_of(&server, last.tag()).as_deref(), Some("revoked"));
    assert_eq!(ask(&server), BOGUS);
}

#[test]
fn a_damaged_state_is_told_and_keeps_what_is_revoked() {
    let (one, three) = (key(1), key(3));
    let last = revoked(1);
    let zone = Zone::start(&[&last, &three], &[&last, &three], &three);
    let server = zone.setup(&[&one, &three]).start();
    wait_until("the state is saved", || zone.state().contains("state=revoked"));
    assert_eq!(ask(&server), SECURE);
    drop(server);

    let text = zone.state();
    let damaged = text.replacen("next=", "next=1", 1);
    assert_ne!(text, damaged);
    std::fs::write(zone.state_file(), damaged).unwrap();
    let server = zone.setup(&[&one, &three]).start();
    let log = server.process.log();
    assert!(log.contains("the state of the trust anchors cannot be used"), "{log}");
    assert!(log.contains("1 revoked keys that the file still tells"), "{log}");
    assert_eq!(state_of(&server, last.tag()).as_deref(), Some("revoked"));
    wait_until("it is written anew", || zone.state().contains("state=valid"));
    drop(server);

    // A file that cannot be read is not overwritten.
    std::fs::remove_file(zone.state_file()).unwrap();
    std::fs::create_dir(zone.state_file()).unwrap();
    let folder = Folder::new();
    let config = folder.file("sixfold.toml");
    let lines = zone.setup(&[&one]).lines().join("\n");
    let port = kit::free_port();
    let own = format!("server.listen = [\"127.0.0.1:{port}\"]\nmetrics.listen = \"\"\ncontrol.socket = \"\"");
    std::fs::write(&config, format!("{lines}\n{own}\n")).unwrap();
    let output = crate::daemon::sixfold(&["serve", "--config", &config.display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    let told = crate::daemon::stderr(&output);
    assert!(told.contains("cannot read the trust anchors"), "{told}");
}

#[test]
fn without_a_folder_to_write_in_the_server_says_so_and_follows_the_keys() {
    let one = key(1);
    let zone = Zone::start(&[&one], &[&one], &one);
    std::fs::remove_dir(zone.folder.join("state")).unwrap();
    let server = zone.setup(&[&one]).start();
    wait_for_log(&server, "cannot save the trust anchors");
    wait_for_state(&server, one.tag(), "valid");
    assert_eq!(ask(&server), SECURE);
    assert_eq!(server.process.log().matches("cannot save").count(), 1);
    drop(server);
    // Nothing is to be kept, so nothing is missing.
    let server = zone.setup(&[&one]).line("dnssec.state-file = \"\"").start();
    wait_for_state(&server, one.tag(), "valid");
    assert!(!server.process.log().contains("cannot save"));
}

#[test]
fn a_negative_anchor_of_an_operator_holds_until_it_is_removed_and_over_a_reload() {
    let (one, two) = (key(1), key(2));
    // Data that no trusted key signed.
    let zone = Zone::start(&[&one], &[&one], &two);
    let server = zone.setup(&[&one]).start();
    wait_for_state(&server, one.tag(), "valid");
    assert_eq!(ask(&server), BOGUS);
    let added = success(&server.ctl(&["anchors", "add-negative", HOST, "--for", "1h"]));
    assert!(added.contains(&format!("{HOST} negative, until 2")) && added.contains("added"), "{added}");
    // A positive anchor above it does not count more, one below it would (RFC 7646 section 1.1).
    assert_eq!(ask(&server), UNCHECKED);
    success(&server.ctl(&["reload"]));
    let shown = objects(&server).into_iter().find(|one| one["state"] == "negative").unwrap();
    assert_eq!((&shown["zone"], &shown["source"]), (&HOST.into(), &"added".into()));
    let status = success(&server.ctl(&["status"]));
    let file = zone.folder.file("anchors").display().to_string();
    assert!(status.contains(&format!("\nanchors     {file}, followed: 1 valid, 1 negative\n")), "{status}");
    assert!(status.contains("\nsignatures  0 being verified or waiting\n"), "{status}");
    let status: Value = serde_json::from_str(&success(&server.ctl(&["status", "--json"]))).unwrap();
    let anchors = &status["trust_anchors"];
    assert_eq!((&anchors["source"], &anchors["followed"]), (&file.into(), &true.into()));
    assert_eq!((&anchors["keys"]["valid"], &anchors["negative"]), (&1.into(), &1.into()));
    assert_eq!((&anchors["keys"]["add-pend"], &status["signatures"]), (&0.into(), &0.into()));
    assert_eq!(ask(&server), UNCHECKED);
    let removed = success(&server.ctl(&["anchors", "remove", HOST]));
    assert!(removed.contains("is validated again"), "{removed}");
    assert_eq!(ask(&server), BOGUS);
    let nothing = server.ctl(&["anchors", "remove", HOST]);
    assert_eq!(nothing.status.code(), Some(1));
    // One that ends by itself, on a slow machine before the next question.
    success(&server.ctl(&["anchors", "add-negative", HOST, "--for", "1s"]));
    wait_for_log(&server, &format!("the negative trust anchor of {HOST} has ended"));
    wait_until("it is validated again", || ask(&server) == BOGUS);
    assert!(!server.ctl(&["anchors", "add-negative", HOST]).status.success(), "without an end");
    let longer = server.ctl(&["anchors", "add-negative", HOST, "--for", "8d"]);
    assert_eq!(longer.status.code(), Some(2));
}

#[test]
fn a_time_is_for_a_negative_anchor_that_is_added_and_otherwise_wrong_usage() {
    for words in [&["anchors", "remove", HOST, "--for", "1h"][..], &["anchors", "--for", "1h"]] {
        let output = crate::daemon::sixfold(&[&["ctl"], words].concat());
        let told = crate::daemon::stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.starts_with("sixfold: `--for` is for `add-negative`"), "{words:?}: {told}");
    }
}

#[test]
fn a_reload_that_turns_trust_into_validate_follows_the_keys() {
    let (one, two) = (key(1), key(2));
    let zone = Zone::start(&[&one], &[&one], &one);
    let server = zone.setup(&[&one]).line("dns64.dnssec = \"trust\"").start();
    assert_eq!(ask(&server), UNCHECKED);
    let refused = server.ctl(&["anchors"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(crate::daemon::stderr(&refused).contains("nothing is validated"));
    server.rewrite(&["dns64.dnssec = \"validate\""]);
    let told = success(&server.ctl(&["reload"]));
    assert!(told.contains("is not kept in") && told.contains("sixfold ctl upgrade"), "{told}");
    assert_eq!(ask(&server), SECURE, "what was cached without validation is not answered");
    wait_for_state(&server, one.tag(), "valid");
    zone.publish(&[&one], &[&one], &two);
    success(&server.ctl(&["flush"]));
    assert_eq!(ask(&server), BOGUS);
    server.rewrite(&["dns64.dnssec = \"trust\""]);
    success(&server.ctl(&["reload"]));
    assert_eq!(ask(&server), UNCHECKED);
}

#[test]
fn an_upgrade_goes_on_with_what_was_learned() {
    let (one, two, three) = (key(1), key(2), key(3));
    let zone = Zone::start(&[&one, &two, &three], &[&one, &three], &one);
    let service = Service::start(zone.setup(&[&one, &three]));
    let server = &service.server;
    wait_for_state(server, two.tag(), "add-pend");
    wait_until("the state is saved", || zone.state().contains("state=add-pend"));
    let since = |server: &Daemon| {
        objects(server)
            .into_iter()
            .find(|found| found["key_tag"] == two.tag())
            .map(|found| found["since"].clone())
    };
    let before = since(server);
    success(&server.ctl(&["anchors", "add-negative", "other.test", "--for", "1h"]));
    service.upgrade();
    assert_eq!(since(server), before, "the hold-down goes on");
    assert!(objects(server).iter().any(|one| one["zone"] == "other.test." && one["state"] == "negative"));
    assert_eq!(ask(server), SECURE);
    let last = revoked(1);
    zone.publish(&[&last, &two, &three], &[&last, &three], &three);
    service.upgrade();
    wait_for_state(server, last.tag(), "revoked");
    wait_until("the state is saved", || zone.state().contains("state=revoked"));
    assert_eq!(ask(server), SECURE, "the other key has signed the data");
}

#[test]
fn the_roots_keys_are_followed_without_being_told() {
    let one = key(1);
    let zone = Zone::start(&[&one], &[&one], &one);
    let server =
        zone.setup(&[&one]).line("dnssec.trust-anchors = \"root\"").line("dnssec.follow = false").start();
    // The keys of the real root are asked for, and this upstream has none.
    wait_for_log(&server, "the keys of . cannot be followed");
    let asked = zone.upstream.all_asked("");
    assert!(asked.keys().any(|(name, qtype)| name.is_empty() && *qtype == rtype::DNSKEY), "{asked:?}");
    let tags: Vec<Value> = objects(&server).iter().map(|one| one["key_tag"].clone()).collect();
    // https://data.iana.org/root-anchors/root-anchors.xml
    assert!(tags.contains(&20_326.into()) && tags.contains(&38_696.into()), "{tags:?}");
    wait_until("the state is saved", || zone.state().contains("zone . next="));
}
