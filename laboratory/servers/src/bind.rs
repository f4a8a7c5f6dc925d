//! BIND's `named`, as a resolver.

use crate::demands::{Demands, Lack, Prefix, ZONE_FILE};
use crate::lines::merge_options;
use crate::process::Ready;
use crate::program::release;
use crate::recipe::{LaunchPlan, Place, Recipe};
use crate::task::{Anchors, CERTIFICATE_FILE, Encrypted, KEY_FILE, Limits, Task, TrustAnchor, Validation};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The recipe.
pub const RECIPE: Recipe = Recipe {
    name: "bind",
    program: "named",
    remedy: "install it with `apt-get install bind9`",
    version: &["-v"],
    version_prefix: "BIND",
    encrypted: &[Encrypted::Tls, Encrypted::Https],
    ready: Ready::Answer,
    lacks: Some(&[Lack::Trust]),
    plan,
};

/// The log keeps warnings and errors: they explain a failed start.
pub(crate) const LOG: &str = "controls { };
logging {
  channel errors { stderr; severity warning; };
  category default { errors; };
  category lame-servers { null; };
  category unmatched { null; };
};
";

fn plan(task: &Task, place: &Place) -> LaunchPlan {
    let (demands, folder) = (&task.demands, place.folder.display());
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let mut ours = vec![
        format!("directory \"{folder}\";"),
        "pid-file none;".to_owned(),
        "session-keyfile none;".to_owned(),
        "recursion yes;".to_owned(),
        format!("dnssec-validation {};", yes_no(task.validation.anchors().is_some())),
        // Built-in empty zones (RFC 6303) would answer before the forwarder is asked.
        format!("empty-zones-enable {};", yes_no(demands.special_names)),
        "querylog no;".to_owned(),
    ];
    ours.extend([("", false), ("-v6", true)].map(|(family, is_ipv6)| listen(task, family, is_ipv6)));
    if !task.forwarders.is_empty() {
        ours.extend(["forward only;".to_owned(), forwarders(&task.forwarders)]);
    }
    let allow = demands.allow.as_ref().map_or_else(|| "any;".to_owned(), |allow| list(allow));
    ours.extend(
        ["allow-query", "allow-query-cache", "allow-recursion"].map(|key| format!("{key} {{ {allow} }};")),
    );
    ours.extend(dns64(demands));
    if let Limits::Raised(buffer) = task.limits {
        ours.push("recursive-clients 10000;".to_owned());
        if release(place.version, "BIND ") >= (9, 18) {
            ours.push(format!("udp-receive-buffer {buffer};"));
        }
    }
    if demands.special_names && !demands.ipv4only {
        ours.push("ipv4only-enable no;".to_owned());
    }
    if demands.stale {
        ours.extend(["stale-cache-enable yes;", "stale-answer-enable yes;"].map(str::to_owned));
    }
    let mut statements = zones(task);
    let files = own_zones(demands, &mut ours, &mut statements);
    let before = encryption(task, place) + &anchors(&task.validation, &mut ours);
    let lines = merge_options(ours, &task.options);
    let text = format!("{before}options {{\n  {}\n}};\n{LOG}{statements}", lines.join("\n  "));
    let workers = task.workers.to_string();
    // Until named has read its configuration, it would log to the system's log.
    let file = format!("{folder}/named.conf");
    let command = [place.program, "-f", "-L", "/dev/stderr", "-n", &workers, "-c", &file].map(str::to_owned);
    let files = files.into_iter().chain([("named.conf".to_owned(), text)]).collect();
    LaunchPlan { command: command.to_vec(), files, ..LaunchPlan::default() }
}

/// Elements of a list.
fn list(elements: &[String]) -> String {
    let elements: Vec<String> = elements.iter().map(|element| format!("{element};")).collect();
    if elements.is_empty() { "none;".to_owned() } else { elements.join(" ") }
}

/// Listeners of one family of addresses.
fn listen(task: &Task, family: &str, is_ipv6: bool) -> String {
    let of_family = task.listen.iter().filter(|listen| listen.is_ipv6() == is_ipv6);
    let addresses: Vec<String> = of_family.map(|listen| listen.ip().to_string()).collect();
    if addresses.is_empty() {
        return format!("listen-on{family} {{ none; }};");
    }
    let over = match task.encrypted {
        Some(Encrypted::Tls) => " tls local",
        Some(Encrypted::Https) => " tls local http default",
        Some(Encrypted::Quic) | None => "",
    };
    format!("listen-on{family} port {}{over} {{ {} }};", task.port(), list(&addresses))
}

/// The statement `tls` of a server that is asked over an encrypted transport.
fn encryption(task: &Task, place: &Place) -> String {
    let folder = place.folder.display();
    match task.encrypted {
        Some(Encrypted::Tls | Encrypted::Https) => format!(
            "tls local {{\n  cert-file \"{folder}/{CERTIFICATE_FILE}\";\n  key-file \"{folder}/{KEY_FILE}\";\n}};\n"
        ),
        Some(Encrypted::Quic) | None => String::new(),
    }
}

fn forwarders(servers: &[SocketAddr]) -> String {
    let servers: Vec<String> =
        servers.iter().map(|server| format!("{} port {}", server.ip(), server.port())).collect();
    format!("forwarders {{ {} }};", list(&servers))
}

/// Rules of DNS64. The first matching element of a list decides, as does the first matching rule.
fn dns64(demands: &Demands) -> Vec<String> {
    let mut common = String::new();
    let lists = [("clients", &demands.clients), ("exclude", &demands.exclude)];
    for (key, networks) in lists {
        if let Some(networks) = networks {
            common += &format!(" {key} {{ {} }};", list(networks));
        }
    }
    if let Some(suffix) = demands.suffix {
        common += &format!(" suffix {suffix};");
    }
    for (key, is_on) in [("recursive-only", demands.recursive_only), ("break-dnssec", demands.break_dnssec)] {
        if is_on {
            common += &format!(" {key} yes;");
        }
    }
    let mapping = |(prefix, length): &Prefix, mapped: &[String]| {
        format!("dns64 {prefix}/{length} {{ mapped {{ {} }};{common} }};", list(mapped))
    };
    let (mut lines, mut earlier) = (Vec::new(), Vec::new());
    for rule in &demands.mapped {
        let mapped = [&earlier[..], &rule.ipv4].concat();
        lines.extend(rule.prefixes.iter().map(|prefix| mapping(prefix, &mapped)));
        earlier.extend(rule.ipv4.iter().map(|network| format!("!{network}")));
    }
    earlier.push("any".to_owned());
    lines.extend(demands.prefixes.iter().map(|prefix| mapping(prefix, &earlier)));
    lines
}

/// Statements of forwarded zones. BIND has its built-in zones only for names that are not under `forward only`. For such a name
/// `forward first` changes nothing else: the built-in zone answers.
fn zones(task: &Task) -> String {
    let demands = &task.demands;
    let zone = |name: &str, forward: &str, servers: &[SocketAddr]| {
        format!("zone \"{name}\" {{ type forward; forward {forward}; {} }};\n", forwarders(servers))
    };
    let mut text: String = task.zones.iter().map(|(name, servers)| zone(name, "only", servers)).collect();
    let names: [(bool, &[&str]); 3] = [
        (demands.special_names, &["home.arpa", "resolver.arpa"]),
        (demands.special_names && demands.ipv4only, &["ipv4only.arpa"]),
        (demands.special_names && demands.empty_zones, &["in-addr.arpa", "ip6.arpa"]),
    ];
    for (_, names) in names.into_iter().filter(|(is_own, _)| *is_own) {
        text.extend(names.iter().map(|name| zone(name, "first", &task.forwarders)));
    }
    text
}

/// Files of the server's own zones and policy zones, with their options and statements.
fn own_zones(
    demands: &Demands,
    options: &mut Vec<String>,
    statements: &mut String,
) -> BTreeMap<String, String> {
    let primary = |name: &str, file: &str| format!("zone \"{name}\" {{ type primary; file \"{file}\"; }};\n");
    let mut files = demands.own_zones();
    for file in files.keys() {
        *statements += &primary(file.trim_end_matches(ZONE_FILE), file);
    }
    let policies = demands.policy_zones(&mut files);
    if !policies.is_empty() {
        let names: String = policies.iter().map(|(name, _)| format!("zone \"{name}\"; ")).collect();
        options.push(format!("response-policy {{ {names}}};"));
    }
    policies.iter().for_each(|(name, file)| *statements += &primary(name, file));
    files
}

/// The statement with trust anchors; further options of validation are added to `options`.
fn anchors(validation: &Validation, options: &mut Vec<String>) -> String {
    let Some(Anchors { positive, negative, is_strict }) = validation.anchors() else {
        return String::new();
    };
    if *is_strict {
        options.push("synth-from-dnssec no;".to_owned());
    }
    if !negative.is_empty() {
        let quoted: Vec<String> = negative.iter().map(|zone| format!("\"{zone}\"")).collect();
        options.push(format!("validate-except {{ {} }};", list(&quoted)));
    }
    let line = |anchor: &TrustAnchor| {
        format!("  \"{}\" static-ds {} \"{}\";\n", anchor.zone, anchor.key(), anchor.digest)
    };
    format!("trust-anchors {{\n{}}};\n", positive.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demands::Ipv4Mapping;
    use std::path::Path;

    #[test]
    fn demands_are_options_of_dns64_and_of_the_server() {
        let demands = Demands {
            prefixes: vec![("64:ff9b::".parse().unwrap(), 96)],
            clients: Some(vec!["::1".to_owned()]),
            suffix: Some("::1".parse().unwrap()),
            recursive_only: true,
            break_dnssec: true,
            special_names: true,
            empty_zones: true,
            ..Demands::default()
        };
        let [listen, forwarder] = [5353, 5302].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let task = Task { demands, ..Task::new(listen, forwarder) };
        let place = Place { program: "named", version: "BIND 9.18.49", folder: Path::new("/d") };
        let text = &plan(&task, &place).files["named.conf"];
        for words in [
            "dns64 64:ff9b::/96 { mapped { any; }; clients { ::1; }; suffix ::1; recursive-only yes; break-dnssec yes; };\n",
            "listen-on port 5353 { 127.0.0.1; };\n",
            "listen-on-v6 { none; };\n",
            "empty-zones-enable yes;\n",
            "ipv4only-enable no;\n",
            "zone \"in-addr.arpa\" { type forward; forward first; forwarders { 127.0.0.1 port 5302; }; };\n",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }

    #[test]
    fn rules_are_lists_in_which_the_first_match_decides() {
        let prefix = |text: &str| (text.parse().unwrap(), 96);
        let mapping = |network: &str, prefixes| Ipv4Mapping { ipv4: vec![network.to_owned()], prefixes };
        let demands = Demands {
            prefixes: vec![prefix("64:ff9b::")],
            exclude: Some(vec![]),
            mapped: vec![mapping("10.1.0.0/16", vec![prefix("2001:db8:1::")]), mapping("10.0.0.0/8", vec![])],
            ..Demands::default()
        };
        assert_eq!(
            dns64(&demands),
            [
                "dns64 2001:db8:1::/96 { mapped { 10.1.0.0/16; }; exclude { none; }; };",
                "dns64 64:ff9b::/96 { mapped { !10.1.0.0/16; !10.0.0.0/8; any; }; exclude { none; }; };",
            ]
        );
    }
}
