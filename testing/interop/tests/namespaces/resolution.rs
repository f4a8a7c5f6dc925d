//! Equal answers through Sixfold with any upstream: NSD, Knot DNS and BIND as authorities, Unbound as a validating
//! resolver.

use sixfold_interop::{
    Answer, Authority, Capture, Configuration, Kdig, Lab, Program, Sixfold, address, zones,
};

/// Runs Sixfold with one of these authorities, at this address, as its only upstream.
fn resolves_behind(program: Program, server: &str) {
    let Some(lab) = Lab::new(&[program.file(), "dnssec-signzone", "dumpcap", "tshark"]) else { return };
    let place = lab.scratch.directory("server");
    let mut zones = zones::plain(&place);
    zones.push(zones::signed(&place, "signed.test"));
    let _authority = Authority::start(program, &lab.world, &place, server, &zones);
    let configuration = || Configuration::forwarding_to(&[server]);
    let mut sixfold = Sixfold::start(&lab, &configuration());
    let capture = Capture::start(&lab, &lab.gateway);
    for kdig in [lab.kdig(), lab.kdig().with("+bufsize=1232"), lab.kdig().with("+tcp")] {
        plain_names_resolve(&kdig);
    }
    signed_names_resolve(&lab.kdig().with("+dnssec"), false);
    // The questions again with other transports to the upstream.
    for other in
        [configuration().dns64("lookup = \"parallel\"\n"), configuration().upstream("transport = \"tcp\"\n")]
    {
        sixfold.reload(&other);
        plain_names_resolve(&lab.kdig());
        signed_names_resolve(&lab.kdig().with("+dnssec"), false);
    }
    let capture = capture.finish(&lab);
    assert_eq!(capture.malformed(), "");
    assert!(capture.packets().len() > 60, "{:?}", capture.packets());
}

#[test]
fn names_resolve_behind_nsd() {
    resolves_behind(Program::Nsd, address::FIRST);
}

#[test]
fn names_resolve_behind_knot_dns() {
    resolves_behind(Program::Knot, address::FIRST_IPV6);
}

#[test]
fn names_resolve_behind_bind() {
    resolves_behind(Program::Bind, address::FIRST_IPV6);
}

#[test]
fn names_resolve_behind_unbound_whose_validation_is_believed() {
    let Some(lab) = Lab::new(&["unbound", "nsd", "dnssec-signzone"]) else { return };
    let place = lab.scratch.directory("authority");
    let mut zones = zones::plain(&place);
    zones.push(zones::signed(&place, "signed.test"));
    zones.push(zones::signed(&place, "bogus.test"));
    let _authority = Authority::start(Program::Nsd, &lab.world, &place, address::SECOND, &zones);
    // The trust anchor of another key: no data of this zone validate.
    let wrong = format!("bogus.test. IN DS 12345 13 2 {}", "00".repeat(32));
    zones.last_mut().expect("just added").anchor = Some(wrong);
    let place = lab.scratch.directory("resolver");
    let _resolver = Authority::start_unbound(&lab.world, &place, address::FIRST, address::SECOND, &zones);
    let _sixfold = Sixfold::start(&lab, &Configuration::forwarding_to(&[address::FIRST]));

    plain_names_resolve(&lab.kdig());
    signed_names_resolve(&lab.kdig().with("+dnssec"), true);
    bogus_names_fail(&lab);
}

fn plain_names_resolve(kdig: &Kdig<'_>) {
    // An address, and an address synthesized from it. The TTL is the zone's negative TTL, the smaller one (RFC 6147
    // 5.1.7).
    let answer = kdig.ask("v4only.lab.test", "A");
    assert_eq!(
        (answer.data("A"), answer.answer[0].ttl <= 300),
        (vec![address::WEB], true),
        "{}",
        answer.text
    );
    let answer = kdig.ask("V4only.Lab.TEST", "AAAA");
    assert_eq!(answer.data("AAAA"), [Lab::embedded(address::WEB)], "{}", answer.text);
    assert_eq!(answer.question, "V4only.Lab.TEST. AAAA");
    assert!(answer.answer[0].ttl <= 60 && answer.has("ra"), "{}", answer.text);

    // A real AAAA is passed on, an excluded one is not (RFC 6147 5.1.4).
    assert_eq!(kdig.ask("dual.lab.test", "AAAA").data("AAAA"), ["2001:db8:f::81"]);
    assert_eq!(kdig.ask("mapped.lab.test", "AAAA").data("AAAA"), [Lab::embedded("198.51.100.82")]);

    // Other types pass unchanged.
    assert_eq!(kdig.ask("mail.lab.test", "MX").data("MX"), ["10 v4only.lab.test.", "20 dual.lab.test."]);
    assert_eq!(kdig.ask("text.lab.test", "TXT").data("TXT"), ["\"no addresses\" \"here\""]);

    // Negative answers: no such name, and no data.
    for kind in ["AAAA", "A", "MX"] {
        is_negative(&kdig.ask("missing.lab.test", kind), "NXDOMAIN");
        is_negative(&kdig.ask("text.lab.test", kind), "NOERROR");
    }
    let answer = kdig.ask("gone.lab.test", "AAAA");
    assert_eq!((answer.status.as_str(), answer.data("CNAME")), ("NXDOMAIN", vec!["missing.lab.test."]));

    // CNAME chains: in the zone, into another zone, and through a DNAME (RFC 6672).
    let answer = kdig.ask("alias.lab.test", "AAAA");
    assert_eq!(answer.data("CNAME"), ["middle.lab.test.", "v4only.lab.test."], "{}", answer.text);
    assert_eq!(answer.data("AAAA"), [Lab::embedded(address::WEB)], "{}", answer.text);
    assert_eq!(answer.answer.last().expect("three records").name, "v4only.lab.test.");
    let answer = kdig.ask("far.lab.test", "AAAA");
    assert_eq!(answer.data("CNAME"), ["web.other.test."], "{}", answer.text);
    assert_eq!(answer.data("AAAA"), [Lab::embedded(address::WEB)], "{}", answer.text);
    let answer = kdig.ask("host.old.lab.test", "AAAA");
    assert_eq!(answer.data("DNAME"), ["new.lab.test."], "{}", answer.text);
    // Some servers derive this target from the name in the query, in the letter case of Sixfold's query.
    let target = answer.data("CNAME").concat().to_ascii_lowercase();
    assert_eq!(target, "host.new.lab.test.", "{}", answer.text);
    assert_eq!(answer.data("AAAA"), [Lab::embedded("198.51.100.83")], "{}", answer.text);
}

fn is_negative(answer: &Answer, status: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert!(answer.answer.is_empty() && answer.authority_kinds() == ["SOA"], "{}", answer.text);
}

/// `kdig` asks with DO. `validated`: the upstream sets AD.
fn signed_names_resolve(kdig: &Kdig<'_>, validated: bool) {
    let answer = kdig.ask("dual.signed.test", "AAAA");
    assert_eq!(
        (answer.data("AAAA"), answer.data("RRSIG").len()),
        (vec!["2001:db8:f::81"], 1),
        "{}",
        answer.text
    );
    assert_eq!(answer.has("ad"), validated, "{}", answer.text);

    // Synthesized: the signature of the A records does not go with it.
    for name in ["v4only.signed.test", "alias.signed.test"] {
        let answer = kdig.ask(name, "AAAA");
        assert_eq!(answer.data("AAAA"), [Lab::embedded(address::WEB)], "{}", answer.text);
        assert!(answer.data("RRSIG").iter().all(|data| data.starts_with("CNAME ")), "{}", answer.text);
        assert_eq!(answer.has("ad"), validated, "{}", answer.text);
    }

    // A validating client gets the zone's data with the proof (RFC 6147 5.5 (3)).
    let checking = kdig.clone().with("+cdflag");
    let answer = checking.ask("v4only.signed.test", "AAAA");
    assert_eq!((answer.status.as_str(), answer.answer.len()), ("NOERROR", 0), "{}", answer.text);
    assert_eq!(answer.authority_kinds(), ["NSEC", "RRSIG", "SOA"], "{}", answer.text);
    let answer = checking.ask("v4only.signed.test", "A");
    assert_eq!((answer.data("A"), answer.data("RRSIG").len()), (vec![address::WEB], 1), "{}", answer.text);
    let answer = kdig.ask("missing.signed.test", "AAAA");
    assert_eq!(answer.status, "NXDOMAIN", "{}", answer.text);
    assert_eq!(answer.authority_kinds(), ["NSEC", "RRSIG", "SOA"], "{}", answer.text);
}

/// Bogus data are not replaced by synthesized addresses that do not validate either.
fn bogus_names_fail(lab: &Lab) {
    for kdig in [lab.kdig().with("+bufsize=1232"), lab.kdig().with("+dnssec")] {
        for kind in ["AAAA", "A"] {
            let answer = kdig.ask("v4only.bogus.test", kind);
            assert_eq!((answer.status.as_str(), answer.answer.len()), ("SERVFAIL", 0), "{}", answer.text);
        }
    }
    let answer = lab.kdig().with("+dnssec +cdflag").ask("v4only.bogus.test", "A");
    assert_eq!(answer.data("A"), [address::WEB], "{}", answer.text);
}
