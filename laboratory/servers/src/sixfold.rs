//! Sixfold itself. Cases have its own configuration; here are the keys that a comparison needs.

use crate::process::Ready;
use crate::recipe::{LaunchPlan, Place, Recipe};
use crate::task::{CERTIFICATE_FILE, Encrypted, KEY_FILE, Limits, Task};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};

/// Address of the plain listener beside an encrypted one: no server listens there otherwise.
const PLAIN_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// File of its trust anchors.
const ANCHORS_FILE: &str = "anchors";

/// The recipe.
pub const RECIPE: Recipe = Recipe {
    name: "sixfold",
    program: "sixfold",
    remedy: "build it with `cargo build --profile dist -p sixfold`, or give its path with --device-program",
    version: &["--version"],
    version_prefix: "sixfold",
    encrypted: &[Encrypted::Tls, Encrypted::Https, Encrypted::Quic],
    ready: Ready::Line("sixfold: ready"),
    lacks: None,
    plan,
};

fn plan(task: &Task, place: &Place) -> LaunchPlan {
    let (demands, folder) = (&task.demands, place.folder.display());
    let prefixes = demands.prefixes.iter().map(|(prefix, length)| format!("{prefix}/{length}"));
    let mut values: BTreeMap<&str, String> = BTreeMap::from([
        ("server.listen", list(&task.listen)),
        ("server.workers", task.workers.to_string()),
        ("upstream.forwarders", list(&task.forwarders)),
        ("dns64.prefixes", list(prefixes)),
        ("control.socket", format!("\"{folder}/control.sock\"")),
        ("log.level", "\"error\"".to_owned()),
    ]);
    // The tester is one client network, so the limit for one network must be as high as that for all. No other server
    // here has such a limit.
    if matches!(task.limits, Limits::Raised(_)) {
        values.insert("limits.pending-per-client", "65536".to_owned());
    }
    for (key, networks) in [("server.allow", &demands.allow), ("dns64.clients", &demands.clients)] {
        values.extend(networks.as_ref().map(|networks| (key, list(networks))));
    }
    let mut files = BTreeMap::new();
    if let Some(anchors) = task.validation.anchors() {
        values.insert("dns64.dnssec", "\"validate\"".to_owned());
        values.insert("dnssec.trust-anchors", format!("\"{folder}/{ANCHORS_FILE}\""));
        if !anchors.negative.is_empty() {
            values.insert("dnssec.negative-trust-anchors", list(&anchors.negative));
        }
        if anchors.is_strict {
            values.insert("dnssec.aggressive-nsec", "false".to_owned());
        }
        let lines = anchors.positive.iter().map(|anchor| format!("{anchor}\n"));
        files.insert(ANCHORS_FILE.to_owned(), lines.collect());
    }
    values.extend(encryption(task, place));
    // Options are `section.key = value`. An option without `=` is left as it is, so that the server reports it.
    for option in &task.options {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        values.insert(key.trim(), value.trim().to_owned());
    }
    // Dotted keys need no table headers: TOML allows them in any order, each once. Tables of zones come behind them.
    let mut text: String = values.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    for (zone, servers) in &task.zones {
        text += &format!("[[upstream.zone]]\nzone = \"{zone}\"\nforwarders = {}\n", list(servers));
    }
    files.insert("sixfold.toml".to_owned(), text);
    let command = [place.program, "serve", "--config", &format!("{folder}/sixfold.toml")].map(str::to_owned);
    LaunchPlan { command: command.to_vec(), files, ..LaunchPlan::default() }
}

/// A list of strings in TOML.
fn list(values: impl IntoIterator<Item = impl Display>) -> String {
    let quoted: Vec<String> = values.into_iter().map(|value| format!("\"{value}\"")).collect();
    format!("[{}]", quoted.join(", "))
}

/// Listener and certificate of an encrypted transport. The plain listener, which must exist, leaves the address to the encrypted one.
fn encryption(task: &Task, place: &Place) -> Vec<(&'static str, String)> {
    let folder = place.folder.display();
    let listener = match task.encrypted {
        Some(Encrypted::Tls) => "tls.listen-dot",
        Some(Encrypted::Https) => "tls.listen-doh",
        Some(Encrypted::Quic) => "tls.listen-doq",
        None => return vec![],
    };
    let plain = SocketAddr::from((PLAIN_ADDRESS, task.port()));
    vec![
        ("server.listen", list([plain])),
        (listener, list(&task.listen)),
        ("tls.certificate", format!("\"{folder}/{CERTIFICATE_FILE}\"")),
        ("tls.key", format!("\"{folder}/{KEY_FILE}\"")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_option_takes_the_place_of_ours() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
        let options = vec!["limits.pending-per-client=5".to_owned(), "cache.size = \"1MiB\"".to_owned()];
        let task = Task { options, limits: Limits::Raised(1), ..Task::new(address, address) };
        let place = Place { program: "p", version: "", folder: "/d".as_ref() };
        let text = &plan(&task, &place).files["sixfold.toml"];
        assert!(text.contains("limits.pending-per-client = 5\n") && !text.contains("65536"), "{text}");
        assert!(text.contains("cache.size = \"1MiB\"\n"), "{text}");
    }
}
