//! The recipe with Unbound behind Sixfold (`docs/recipes/recursive`, and the package sixfold-recursive), with its files as they stand, in an
//! Internet of its own: a root, a domain below it, and zones that are signed, unsigned and bogus.

use sixfold_interop::{
    Answer, Authority, Lab, Namespace, Process, Program, address, copy_recipe, program, recipe, zones::Zone,
};
use std::path::{Path, PathBuf};

/// Address of a server without IPv6: one of the AS112 project (RFC 7535), because the well-known prefix carries global addresses only
/// (RFC 6052 section 3.1).
const GLOBAL: &str = "192.31.196.80";

/// [`GLOBAL`] under the well-known prefix.
const SYNTHESIZED: &str = "64:ff9b::c01f:c450";

/// Names `h0.shop.zz` and so on.
const HOSTS: usize = 100;

/// Start of a zone in which `ns` has this address.
fn zone_text(name: &str, server: &str) -> String {
    let kind = if server.contains(':') { "AAAA" } else { "A" };
    let dot = if name == "." { "" } else { "." };
    format!(
        "$ORIGIN {name}{dot}\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 604800 60\n@ NS ns\nns {kind} {server}\n"
    )
}

/// Delegation of a name to a server, with glue.
fn delegation(name: &str, server: &str) -> String {
    let kind = if server.contains(':') { "AAAA" } else { "A" };
    format!("{name} NS ns.{name}\nns.{name} {kind} {server}\n")
}

/// Writes a zone and signs it with a new key. Returns it with its DS record.
fn sign(world: &Namespace, place: &Path, name: &'static str, text: &str) -> Zone {
    let (plain, signed) = (place.join("plain"), place.join("signed"));
    std::fs::write(&plain, text).expect("a zone file");
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let keys = path(place);
    world.run_checked(&["dnssec-keygen", "-q", "-K", &keys, "-a", "ECDSAP256SHA256", "-f", "KSK", name]);
    let files = [path(&signed), path(&plain)];
    world.run_checked(&[
        "dnssec-signzone",
        "-q",
        "-S",
        "-z",
        "-K",
        &keys,
        "-d",
        &keys,
        "-o",
        name,
        "-f",
        &files[0],
        &files[1],
    ]);
    let set = format!("dsset-{}.", name.trim_end_matches('.'));
    let anchor = std::fs::read_to_string(place.join(set)).expect("the DS record");
    Zone { name, file: signed, anchor: anchor.lines().next().map(str::to_owned) }
}

/// The Internet, Unbound and Sixfold.
struct Site<'l> {
    lab: &'l Lab,
    unbound: Process,
    config: PathBuf,
    _sixfold: Process,
    _authorities: [Authority<'l>; 3],
}

impl<'l> Site<'l> {
    fn start(lab: &'l Lab) -> Site<'l> {
        let place = |name: &str| lab.scratch.directory(name);
        let hosts: String = (0..HOSTS).map(|number| format!("h{number} A {GLOBAL}\n")).collect();
        let text = zone_text("shop.zz", address::FIRST_IPV6) + &format!("www A {GLOBAL}\n{hosts}");
        let shop = sign(&lab.world, &place("shop"), "shop.zz", &text);
        let text = zone_text("bogus.zz", address::FIRST_IPV6) + &format!("www A {GLOBAL}\n");
        let bogus = sign(&lab.world, &place("bogus"), "bogus.zz", &text);
        let text = zone_text("plain.zz", address::FIRST_IPV6) + &format!("www A {GLOBAL}\n");
        let plain = place("plain").join("plain");
        std::fs::write(&plain, text).expect("a zone file");
        let plain = Zone { name: "plain.zz", file: plain, anchor: None };

        let ds = shop.anchor.clone().expect("it is signed");
        let text = zone_text("zz", address::SECOND)
            + &["shop", "bogus", "plain"].map(|name| delegation(name, address::FIRST_IPV6)).concat()
            + &format!("{ds}\nbogus DS 12345 13 2 {}\n", "00".repeat(32));
        let domain = sign(&lab.world, &place("zz"), "zz", &text);
        let ds = domain.anchor.clone().expect("it is signed");
        let text = zone_text(".", address::FIRST) + &delegation("zz", address::SECOND) + &ds + "\n";
        let root = sign(&lab.world, &place("root"), ".", &text);
        let anchor = root.anchor.clone().expect("it is signed");

        let start = |program, name: &str, address, zones: &[Zone]| {
            Authority::start(program, &lab.world, &place(name), address, zones)
        };
        let authorities = [
            start(Program::Nsd, "server-root", address::FIRST, &[root]),
            start(Program::Nsd, "server-zz", address::SECOND, &[domain]),
            start(Program::Knot, "server-zones", address::FIRST_IPV6, &[shop, bogus, plain]),
        ];
        let config = unbound_config(lab, &anchor);
        let unbound = start_unbound(lab, &config);
        let toml = copy_recipe(&lab.scratch, "recursive/sixfold.toml", "sixfold.toml");
        let toml = toml.to_string_lossy().into_owned();
        let log = lab.scratch.path().join("sixfold.log");
        let mut sixfold = lab.gateway.start(&[&program("sixfold"), "serve", "--config", &toml], &log);
        sixfold.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));
        Site { lab, unbound, config, _sixfold: sixfold, _authorities: authorities }
    }

    fn ask(&self, name: &str) -> Answer {
        self.lab.kdig().with("+dnssec").ask(name, "AAAA")
    }

    /// Asks for all hosts. All must be answered with the synthesized address.
    fn expect_all_hosts(&self) {
        let names: Vec<String> = (0..HOSTS).map(|number| format!("h{number}.shop.zz")).collect();
        let questions: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "AAAA")).collect();
        let answers = self.lab.kdig().with("+timeout=5").ask_all(&questions);
        assert_eq!(answers.len(), HOSTS);
        for answer in answers {
            assert_eq!(answer.data("AAAA"), [SYNTHESIZED], "{}", answer.text);
        }
    }
}

/// Configuration of Unbound: the recipe's file, and what Debian's package has besides, with the root of this Internet.
fn unbound_config(lab: &Lab, anchor: &str) -> PathBuf {
    let place = lab.scratch.directory("unbound");
    let hints = place.join("hints");
    std::fs::write(&hints, format!(". 3600 NS ns.\nns. 3600 A {}\n", address::FIRST)).expect("a file");
    let (folder, file) = (place.display(), recipe("recursive/unbound.conf"));
    let text = format!(
        "include: \"{file}\"\nserver:\n num-threads: 1\n username: \"\"\n chroot: \"\"\n directory: \"{folder}\"\n \
         pidfile: \"{folder}/unbound.pid\"\n use-syslog: no\n root-hints: \"{}\"\n trust-anchor: \"{anchor}\"\n\
         remote-control:\n control-enable: no\n",
        hints.display()
    );
    let config = place.join("unbound.conf");
    std::fs::write(&config, text).expect("a file");
    config
}

/// Starts Unbound, and waits until it answers at the address of the recipe.
fn start_unbound(lab: &Lab, config: &Path) -> Process {
    let file = config.to_string_lossy();
    let log = lab.scratch.path().join("unbound.log");
    let mut unbound = lab.gateway.start(&["unbound", "-d", "-p", "-c", &file], &log);
    let kdig = sixfold_interop::Kdig::new(&lab.gateway, "::1").with("+timeout=1 -p 5335");
    unbound.expect("Unbound resolves", |_| {
        kdig.ask_all(&[("www.shop.zz", "A")]).first().is_some_and(|answer| answer.data("A") == [GLOBAL])
    });
    unbound
}

fn lab() -> Option<Lab> {
    Lab::new(&["unbound", "nsd", "knotd", "dnssec-signzone", "dnssec-keygen"])
}

#[test]
fn the_recipe_with_unbound_resolves_from_a_root_and_validates() {
    let Some(lab) = lab() else { return };
    let site = Site::start(&lab);
    let secure = site.ask("www.shop.zz");
    assert_eq!((secure.data("AAAA"), secure.has("ad")), (vec![SYNTHESIZED], true), "{}", secure.text);
    let unsigned = site.ask("www.plain.zz");
    assert_eq!((unsigned.data("AAAA"), unsigned.has("ad")), (vec![SYNTHESIZED], false), "{}", unsigned.text);
    // RFC 6147 section 5.5: nothing is synthesized from bogus data.
    let bogus = site.ask("www.bogus.zz");
    assert_eq!((bogus.status.as_str(), bogus.answer.len()), ("SERVFAIL", 0), "{}", bogus.text);
    let missing = site.ask("missing.shop.zz");
    assert_eq!((missing.status.as_str(), missing.has("ad")), ("NXDOMAIN", true), "{}", missing.text);
}

#[test]
fn the_recipe_with_unbound_loses_no_cached_answer_when_unbound_is_killed_under_load() {
    let Some(lab) = lab() else { return };
    let mut site = Site::start(&lab);
    site.expect_all_hosts();
    std::thread::scope(|scope| {
        let asked = &site;
        let load = scope.spawn(move || {
            for _ in 0..10 {
                asked.expect_all_hosts();
            }
        });
        let killed = lab.gateway.run(&["kill", "-KILL", &asked.unbound.id().to_string()]);
        assert!(killed.success, "{}", killed.stderr);
        load.join().expect("all are answered");
    });
    site.expect_all_hosts();
    let new = site.ask("www.shop.zz");
    assert_eq!(new.status, "SERVFAIL", "{}", new.text);

    site.unbound = start_unbound(&lab, &site.config);
    let resolves = sixfold_interop::wait_until(|| site.ask("www.plain.zz").data("AAAA") == [SYNTHESIZED]);
    assert!(resolves, "Sixfold does not ask Unbound again");
}
