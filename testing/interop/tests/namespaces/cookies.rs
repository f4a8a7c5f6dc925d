//! DNS cookies of clients (RFC 7873, RFC 9018) among servers of several vendors that share a secret: each accepts the
//! cookies of the others, over both families, while the secret changes, and through a proxy.

use crate::dnsdist::{PROXYING, start_dnsdist};
use sixfold_interop::{
    Configuration, CookieServer, DigOutput, Kdig, Lab, Program, Sixfold, address, altered_cookie, dig,
    wait_until, zones,
};

/// Secrets of the anycast set, one after the other.
const OLD: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
const NEW: &str = "445536bcd2513298075a5d379663c962";

/// IPv4 addresses of the gateway and the client.
const GATEWAY_IPV4: &str = "192.0.2.1";
const CLIENT_IPV4: &str = "192.0.2.10";

/// Ports of the other server and of dnsdist, in the gateway: a cookie does not depend on the port.
const OTHER_PORT: u16 = 5300;
const DNSDIST_PORT: u16 = 5301;

/// A name that Sixfold answers itself, and one that the other server has.
const OURS: [&str; 2] = ["nas.home", "A"];
const THEIRS: [&str; 2] = ["v4only.lab.test", "A"];

fn with_ipv4(programs: &[&str]) -> Option<Lab> {
    let lab = Lab::new(&[&["dig", "curl"], programs].concat())?;
    lab.gateway.configure(&format!("addr add {GATEWAY_IPV4}/24 dev lan"));
    lab.client.configure(&format!("addr add {CLIENT_IPV4}/24 dev lan"));
    Some(lab)
}

/// Sixfold with these secrets, and more lines for `[limits]`.
fn fleet(secrets: &str, limits: &str) -> Configuration {
    Configuration::forwarding_to(&[address::FIRST]).dns64(&format!(
        "[local]\nrecords = [\"nas.home. 60 IN A 198.51.100.7\"]\n[edns]\ncookie-secret = {secrets}\n[limits]\n{limits}"
    ))
}

fn quoted(secret: &str) -> String {
    format!("\"{secret}\"")
}

/// Queries Sixfold with a cookie.
fn ours(lab: &Lab, server: &str, cookie: &str) -> DigOutput {
    dig(&lab.client, server, 53, &[&[cookie], &OURS[..]].concat())
}

/// Queries the other server with a cookie, and does not try again after BADCOOKIE.
fn theirs(lab: &Lab, server: &str, cookie: &str) -> DigOutput {
    dig(&lab.client, server, OTHER_PORT, &[&[cookie, "+nobadcookie"], &THEIRS[..]].concat())
}

fn counted(sixfold: &Sixfold<'_>, result: &str) -> u64 {
    sixfold.metric(&format!("sixfold_cookies_total{{result=\"{result}\"}}")) as u64
}

fn words(cookie: &str) -> String {
    format!("+cookie={cookie}")
}

/// The cookies of this server software are valid at Sixfold and the other way round, for clients of both families.
fn share_a_secret(make: Program) {
    let Some(lab) = with_ipv4(&[make.file()]) else { return };
    let place = lab.scratch.directory("server");
    let addresses = [address::GATEWAY, GATEWAY_IPV4];
    let zones = zones::plain(&place);
    let server = CookieServer::start(make, &lab.gateway, &place, &addresses, OTHER_PORT, &[OLD], &zones);
    let sixfold = Sixfold::start(&lab, &fleet(&quoted(OLD), ""));
    let mut learned = Vec::new();
    for at in addresses {
        // A cookie of the other server at Sixfold: it is valid, and as it is new, it comes back unchanged.
        let told = theirs(&lab, at, "+cookie");
        assert_eq!(told.status(), "BADCOOKIE", "{}", told.text);
        let cookie = told.learned().to_owned();
        let valid = counted(&sixfold, "valid");
        let told = ours(&lab, at, &words(&cookie));
        assert_eq!((told.status(), told.learned()), ("NOERROR", cookie.as_str()), "{}", told.text);
        assert_eq!((counted(&sixfold, "valid"), counted(&sixfold, "invalid")), (valid + 1, 0));
        assert_eq!(theirs(&lab, at, &words(&cookie)).status(), "NOERROR");

        // A cookie of Sixfold at the other server.
        let cookie = ours(&lab, at, "+cookie").learned().to_owned();
        let told = theirs(&lab, at, &words(&cookie));
        assert_eq!(told.statuses, ["NOERROR"], "{}", told.text);
        let told = theirs(&lab, at, &words(&altered_cookie(&cookie)));
        assert_eq!(told.statuses, ["BADCOOKIE"], "{}", told.text);
        learned.push(cookie);
    }
    // A cookie is valid for one address.
    learned.reverse();
    for (at, cookie) in addresses.iter().zip(&learned) {
        let invalid = counted(&sixfold, "invalid");
        for wrong in [cookie.clone(), altered_cookie(cookie)] {
            let told = ours(&lab, at, &words(&wrong));
            assert_eq!(told.status(), "NOERROR", "{}", told.text);
            assert_ne!(told.learned(), wrong);
            assert_eq!(theirs(&lab, at, &words(&wrong)).statuses, ["BADCOOKIE"]);
        }
        assert_eq!(counted(&sixfold, "invalid"), invalid + 2);
    }
    server.stop();
}

#[test]
fn bind_and_sixfold_know_one_another_s_cookies() {
    share_a_secret(Program::Bind);
}

#[test]
fn knot_dns_and_sixfold_know_one_another_s_cookies() {
    share_a_secret(Program::Knot);
}

#[test]
fn unbound_and_sixfold_know_one_another_s_cookies() {
    let Some(lab) = Lab::new(&["unbound"]) else { return };
    // "Version 1.17.1" is on the first line.
    let told = lab.client.run(&["unbound", "-V"]).stdout;
    let version = told.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    if (numbers.next(), numbers.next()) < (Some(1), Some(18)) {
        kit::skip(&format!("Unbound {version} makes no cookies; `answer-cookie` came with 1.18"));
    } else {
        kit::skip(&format!(
            "Unbound {version} has `answer-cookie`: its configuration is not written here yet"
        ));
    }
}

#[test]
fn the_secret_of_a_fleet_changes_and_no_cookie_becomes_worthless() {
    let Some(lab) = with_ipv4(&["named"]) else { return };
    let addresses = [address::GATEWAY, GATEWAY_IPV4];
    let step = |number: u32, secrets: &[&str]| {
        let place = lab.scratch.directory(&format!("server{number}"));
        let zones = zones::plain(&place);
        CookieServer::start(Program::Bind, &lab.gateway, &place, &addresses, OTHER_PORT, secrets, &zones)
    };
    let mut sixfold = Sixfold::start(&lab, &fleet(&quoted(OLD), ""));
    let from_ours = |at: &str| ours(&lab, at, "+cookie").learned().to_owned();
    let from_theirs = |at: &str| theirs(&lab, at, "+cookie").learned().to_owned();
    let is_theirs = |at: &str, cookie: &str| theirs(&lab, at, &words(cookie)).status() == "NOERROR";
    let mut server = step(0, &[OLD]);
    let first = addresses.map(from_ours);
    for (at, cookie) in addresses.iter().zip(&first) {
        assert!(is_theirs(at, cookie));
    }
    // 1: all servers know the new secret, none uses it. 2: all use it, and know the old one. The order of the servers
    // does not matter.
    for (number, bind, sixfold_has) in [
        (1, &[OLD][..], [OLD, NEW]),
        (2, &[OLD, NEW], [OLD, NEW]),
        (3, &[NEW, OLD], [OLD, NEW]),
        (4, &[NEW, OLD], [NEW, OLD]),
    ] {
        server.stop();
        server = step(number, bind);
        sixfold.reload(&fleet(&format!("{sixfold_has:?}"), ""));
        for (at, old) in addresses.iter().zip(&first) {
            let invalid = counted(&sixfold, "invalid");
            let valid = counted(&sixfold, "valid");
            let (ours_made, theirs_made) = (from_ours(at), from_theirs(at));
            for cookie in [old, &ours_made] {
                assert!(is_theirs(at, cookie), "step {number}: BIND does not know {cookie}");
            }
            for cookie in [old, &theirs_made] {
                let told = ours(&lab, at, &words(cookie));
                // A cookie of the old secret is renewed with the new one, which the other server knows.
                assert!(is_theirs(at, told.learned()), "step {number}: {}", told.text);
                let is_renewed = cookie == old && number == 4;
                assert_eq!(
                    told.learned() != cookie,
                    is_renewed || sixfold_has[0] != bind[0] && cookie != old
                );
            }
            assert_eq!((counted(&sixfold, "valid"), counted(&sixfold, "invalid")), (valid + 2, invalid));
        }
    }
    // The end: the old secret is removed, and its cookies are invalid.
    sixfold.reload(&fleet(&quoted(NEW), ""));
    for (at, old) in addresses.iter().zip(&first) {
        let (valid, invalid) = (counted(&sixfold, "valid"), counted(&sixfold, "invalid"));
        let told = ours(&lab, at, &words(old));
        assert!(is_theirs(at, told.learned()));
        ours(&lab, at, &words(&from_theirs(at)));
        assert_eq!((counted(&sixfold, "valid"), counted(&sixfold, "invalid")), (valid + 1, invalid + 1));
    }
    server.stop();
}

#[test]
fn a_cookie_that_bind_made_exempts_from_the_limit_of_equal_answers() {
    let Some(lab) = with_ipv4(&["named"]) else { return };
    let place = lab.scratch.directory("server");
    let zones = zones::plain(&place);
    let addresses = [address::GATEWAY, GATEWAY_IPV4];
    let _server =
        CookieServer::start(Program::Bind, &lab.gateway, &place, &addresses, OTHER_PORT, &[OLD], &zones);
    let sixfold = Sixfold::start(&lab, &fleet(&quoted(OLD), "responses-per-client = 1\n"));
    let slipped = || sixfold.metric("sixfold_slipped_total{reason=\"responses_per_client\"}");
    for at in addresses {
        let cookie = theirs(&lab, at, "+cookie").learned().to_owned();
        let kdig = |cookie: &str, wait: &str| {
            let kdig = Kdig::new(&lab.client, at).with(&format!("+ignore +cookie={cookie} +timeout={wait}"));
            kdig.ask_all(&[(OURS[0], OURS[1]); 10])
        };
        // A client without a valid cookie meets the rate limit: one answer in a second.
        let before = slipped();
        assert!(wait_until(|| {
            let answers = kdig(&altered_cookie(&cookie), "1");
            answers.iter().any(|answer| answer.has("tc")) && slipped() > before
        }));
        let before = slipped();
        let answers = kdig(&cookie, "20");
        assert_eq!(answers.len(), 10);
        for answer in &answers {
            assert_eq!(
                (answer.data("A"), answer.has("tc")),
                (vec!["198.51.100.7"], false),
                "{}",
                answer.text
            );
        }
        assert_eq!(slipped().to_bits(), before.to_bits());
    }
}

/// RFC 7873 section 5.4: a message without a question may ask for a cookie alone. Sixfold answers it with BADCOOKIE.
/// `dig` then sends the cookie of that answer.
#[test]
fn dig_and_kdig_bring_back_what_they_have_learned() {
    let Some(lab) = with_ipv4(&[]) else { return };
    let sixfold = Sixfold::start(&lab, &fleet(&quoted(OLD), ""));
    for at in [address::GATEWAY, GATEWAY_IPV4] {
        let cookie = ours(&lab, at, "+cookie").learned().to_owned();
        let brought = words(&altered_cookie(&cookie));
        let told = dig(&lab.client, at, 53, &["+header-only", &brought]);
        assert_eq!(told.statuses, ["BADCOOKIE", "NOERROR"], "{}", told.text);
        assert_eq!(told.learned()[..16], cookie[..16]);

        let told = lab.kdig().with("+cookie").ask(OURS[0], OURS[1]);
        let learned = told.text.lines().find_map(|line| line.strip_prefix(";; COOKIE: "));
        let learned = learned.unwrap_or_else(|| panic!("no cookie in\n{}", told.text));
        assert_eq!((told.status.as_str(), learned.len()), ("NOERROR", 48), "{}", told.text);
        let valid = counted(&sixfold, "valid");
        for transport in ["+notcp", "+tcp"] {
            let told = lab.kdig().with(&format!("+cookie={learned} {transport}")).ask(OURS[0], OURS[1]);
            assert!(told.text.contains(&format!(";; COOKIE: {learned}\n")), "{}", told.text);
        }
        assert_eq!(counted(&sixfold, "valid"), valid + 2);
    }
    // A client without a cookie is served as usual, and gets none.
    let told = ours(&lab, GATEWAY_IPV4, "+nocookie");
    assert_eq!((told.status(), told.cookie.as_deref()), ("NOERROR", None));
}

/// The address in a cookie is the client's, even if a proxy forwards the query: the cookie is valid without the proxy
/// and at the other server too.
#[test]
fn a_cookie_that_came_through_a_proxy_is_the_client_s() {
    let Some(lab) = with_ipv4(&["dnsdist", "named"]) else { return };
    let place = lab.scratch.directory("server");
    let zones = zones::plain(&place);
    let addresses = [address::GATEWAY, GATEWAY_IPV4];
    let _server =
        CookieServer::start(Program::Bind, &lab.gateway, &place, &addresses, OTHER_PORT, &[OLD], &zones);
    let configuration = fleet(&quoted(OLD), "").server("proxy-from = [\"::1\"]\n");
    let sixfold = Sixfold::start(&lab, &configuration);
    let _dnsdist = start_dnsdist(&lab, &addresses, DNSDIST_PORT, vec![PROXYING.to_owned()]);
    let through = |at: &str, more: &[&str]| dig(&lab.client, at, DNSDIST_PORT, &[more, &OURS[..]].concat());
    let mut learned = Vec::new();
    for at in addresses {
        for transport in ["+notcp", "+tcp"] {
            let cookie = through(at, &["+cookie", transport]).learned().to_owned();
            let valid = counted(&sixfold, "valid");
            assert_eq!(ours(&lab, at, &words(&cookie)).learned(), cookie);
            assert_eq!(through(at, &[&words(&cookie), transport]).learned(), cookie);
            assert_eq!(counted(&sixfold, "valid"), valid + 2);
            assert_eq!(theirs(&lab, at, &words(&cookie)).statuses, ["NOERROR"]);
            learned.push((at, cookie));
        }
    }
    // Another client behind the same proxy cannot use it.
    let invalid = counted(&sixfold, "invalid");
    for (at, cookie) in &learned {
        let other = if *at == address::GATEWAY { GATEWAY_IPV4 } else { address::GATEWAY };
        assert_ne!(through(other, &[&words(cookie)]).learned(), cookie);
    }
    assert_eq!(counted(&sixfold, "invalid"), invalid + learned.len() as u64);
}
