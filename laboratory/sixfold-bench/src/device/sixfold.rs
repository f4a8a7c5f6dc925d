//! Sixfold itself.

use super::{CERTIFICATE_FILE, KEY_FILE, LaunchPlan, Template, TemplateInput};
use measure::order::Transport;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

/// Address of the plain listener beside an encrypted one: no device listens there otherwise.
const PLAIN_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// File of its trust anchors.
const ANCHORS_FILE: &str = "anchors";

pub(super) const TEMPLATE: Template = Template {
    name: "sixfold",
    program: "sixfold",
    remedy: "build it with `cargo build --profile dist -p sixfold`, or give its path with --device-program",
    version: &["--version"],
    version_prefix: "sixfold",
    encrypted: &[Transport::Tls, Transport::Https, Transport::Quic],
    plan,
};

fn plan(input: &TemplateInput) -> LaunchPlan {
    let (settings, folder) = (input.settings, input.folder.display());
    let (prefix, length) = settings.prefix;
    // The tester is one client network, so the limit for one network must be as high as that for all. No other server
    // here has such a limit.
    let mut defaults = vec![
        ("server.listen", format!("[\"{}\"]", settings.listen)),
        ("server.workers", settings.workers.to_string()),
        ("upstream.forwarders", format!("[\"{}\"]", settings.upstream)),
        ("dns64.prefixes", format!("[\"{prefix}/{length}\"]")),
        ("control.socket", format!("\"{folder}/control.sock\"")),
        ("log.level", "\"error\"".to_owned()),
    ];
    if !settings.as_shipped {
        defaults.push(("limits.pending-per-client", "65536".to_owned()));
    }
    let mut files = BTreeMap::new();
    if let Some(anchor) = &settings.trust_anchor {
        defaults.push(("dns64.dnssec", "\"validate\"".to_owned()));
        defaults.push(("dnssec.trust-anchors", format!("\"{folder}/{ANCHORS_FILE}\"")));
        files.insert(ANCHORS_FILE.to_owned(), format!("{anchor}\n"));
    }
    let mut values: BTreeMap<String, String> =
        defaults.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let encrypted = match settings.transport {
        Transport::Tls => Some("tls.listen-dot"),
        Transport::Https => Some("tls.listen-doh"),
        Transport::Quic => Some("tls.listen-doq"),
        Transport::Udp | Transport::Tcp | Transport::TcpReuse | Transport::Tfo => None,
    };
    if let Some(listener) = encrypted {
        // The plain listener, which must exist, leaves the address to the encrypted one.
        let plain = SocketAddr::from((PLAIN_ADDRESS, settings.listen.port()));
        for (key, value) in [
            ("server.listen", format!("[\"{plain}\"]")),
            (listener, format!("[\"{}\"]", settings.listen)),
            ("tls.certificate", format!("\"{folder}/{CERTIFICATE_FILE}\"")),
            ("tls.key", format!("\"{folder}/{KEY_FILE}\"")),
        ] {
            values.insert(key.to_owned(), value);
        }
    }
    // Options are `section.key = value`. An option without `=` is left as it is, so that the server reports it.
    for option in &settings.options {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        values.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    // Dotted keys need no table headers: TOML allows them in any order, each once.
    let text: String = values.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    files.insert("sixfold.toml".to_owned(), text);
    LaunchPlan {
        command: vec![
            input.program.to_owned(),
            "serve".to_owned(),
            "--config".to_owned(),
            format!("{folder}/sixfold.toml"),
        ],
        files,
        ..LaunchPlan::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Settings;

    #[test]
    fn a_user_s_option_takes_the_place_of_ours() {
        let options = vec!["limits.pending-per-client=5".to_owned(), "cache.size = \"1MiB\"".to_owned()];
        let settings = Settings { options, ..Settings::example() };
        let input = TemplateInput {
            settings: &settings,
            program: "p",
            version: "",
            folder: std::path::Path::new("/d"),
        };
        let text = &plan(&input).files["sixfold.toml"];
        assert!(text.contains("limits.pending-per-client = 5\n") && !text.contains("65536"), "{text}");
        assert!(text.contains("cache.size = \"1MiB\"\n"), "{text}");
    }
}
