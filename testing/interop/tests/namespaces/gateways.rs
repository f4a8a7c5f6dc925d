//! Two TAYGAs behind two prefixes: one dies under traffic, and comes back.

use crate::web::{PAGE, start_translator, start_web_server};
use sixfold_interop::{Authority, Configuration, Lab, Program, Sixfold, address, wait_until};
use std::path::Path;
use std::time::Instant;

/// Prefix of the second translator.
const SECOND_PREFIX: &str = "2001:db8:65::/96";

/// The web server under the second prefix.
const SECOND_WEB: &str = "2001:db8:65::c633:6450";

/// A name without AAAA records.
const NAME: &str = "v4only.lab.test";

fn addresses(lab: &Lab) -> Vec<String> {
    let answer = lab.kdig().ask(NAME, "AAAA");
    answer.data("AAAA").into_iter().map(str::to_owned).collect()
}

/// The page over a gateway, by the client.
fn fetches(lab: &Lab, address: &str) -> bool {
    let url = format!("http://[{address}]/");
    let curl = ["curl", "--silent", "--max-time", "5", "--noproxy", "*", &url];
    lab.client.run(&curl).stdout.contains(PAGE)
}

#[test]
fn the_prefix_of_a_dead_translator_leaves_the_answers_and_comes_back() {
    let Some(lab) = Lab::new(&["nsd", "nginx", "tayga", "curl"]) else { return };
    if !Path::new("/dev/net/tun").exists() {
        return kit::skip("there is no /dev/net/tun, which TAYGA needs");
    }
    let _authority = Authority::of_lab(Program::Nsd, &lab);
    let _web = start_web_server(&lab, address::WEB, &lab.scratch.path().join("access.log"));
    let mut first = start_translator(&lab, "nat64", address::PREFIX, 64);
    let mut second = start_translator(&lab, "second", SECOND_PREFIX, 65);
    let probes = format!("[\"tcp {web}:80\", \"icmp {web}\"]", web = address::WEB);
    let gateway = |prefix| format!("[[dns64.gateway]]\nprefix = \"{prefix}\"\nprobe = {probes}\n");
    let gateways = gateway(address::PREFIX) + &gateway(SECOND_PREFIX);
    let configuration = Configuration::forwarding_to(&[address::FIRST])
        .prefixes(&[address::PREFIX, SECOND_PREFIX])
        .dns64(&gateways);
    let sixfold = Sixfold::start(&lab, &configuration);
    let both = [Lab::embedded(address::WEB), SECOND_WEB.to_owned()];
    let is_up = |prefix: &str| sixfold.log().matches(&format!("the gateway of {prefix} is up")).count();
    assert!(wait_until(|| is_up(address::PREFIX) == 1 && is_up(SECOND_PREFIX) == 1), "{}", sixfold.log());
    assert_eq!(addresses(&lab), both);
    assert!(fetches(&lab, &both[0]) && fetches(&lab, SECOND_WEB));

    // It is silent, as a machine without power.
    first.signal("STOP");
    let death = Instant::now();
    assert!(wait_until(|| addresses(&lab) == both[1..]), "{}", sixfold.log());
    println!("the dead prefix has left the answers {:?} after the death", death.elapsed());
    let down = format!("the gateway of {} is down: no reply in time", address::PREFIX);
    assert_eq!(sixfold.log().matches(&down).count(), 1, "{}", sixfold.log());
    assert!(fetches(&lab, SECOND_WEB), "the other gateway serves");
    for _ in 0..10 {
        assert_eq!(addresses(&lab), both[1..]);
    }
    first.signal("CONT");
    assert!(wait_until(|| addresses(&lab) == both), "{}", sixfold.log());
    assert!(fetches(&lab, &both[0]));

    // Its device goes with it, so there is no route.
    second.kill();
    assert!(wait_until(|| addresses(&lab) == both[..1]), "{}", sixfold.log());
    let down = format!("the gateway of {SECOND_PREFIX} is down: unreachable");
    assert_eq!(sixfold.log().matches(&down).count(), 1, "{}", sixfold.log());
    // With none alive, answers are as with both.
    first.signal("STOP");
    assert!(wait_until(|| addresses(&lab) == both), "{}", sixfold.log());
    first.signal("CONT");
}
