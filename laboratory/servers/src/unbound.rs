//! Unbound.

use crate::demands::{Demands, Lack};
use crate::process::Ready;
use crate::recipe::{LaunchPlan, Place, Recipe};
use crate::task::{CERTIFICATE_FILE, Encrypted, KEY_FILE, Limits, Task};

/// The recipe.
pub const RECIPE: Recipe = Recipe {
    name: "unbound",
    program: "unbound",
    remedy: "install it with `apt-get install unbound`",
    version: &["-V"],
    version_prefix: "Version",
    encrypted: &[Encrypted::Tls, Encrypted::Https],
    ready: Ready::Answer,
    lacks: Some(&[Lack::Prefixes, Lack::OptionsOfBind, Lack::Trust, Lack::PartialExclusion]),
    plan,
};

fn plan(task: &Task, place: &Place) -> LaunchPlan {
    let (demands, folder) = (&task.demands, place.folder.display());
    let mut lines: Vec<String> =
        task.addresses().map(|address| format!("interface: {address}@{}", task.port())).collect();
    lines.extend([
        "do-daemonize: no".to_owned(),
        "username: \"\"".to_owned(),
        "chroot: \"\"".to_owned(),
        format!("directory: \"{folder}\""),
        "pidfile: \"\"".to_owned(),
        "use-syslog: no".to_owned(),
        "logfile: \"\"".to_owned(),
        "verbosity: 0".to_owned(),
        "log-queries: no".to_owned(),
        format!("num-threads: {}", task.workers),
        "so-reuseport: yes".to_owned(),
        format!("module-config: \"{}\"", modules(task)),
        // The forwarder may be on the loopback interface, to which Unbound sends no queries by default.
        "do-not-query-localhost: no".to_owned(),
    ]);
    lines.extend(access(demands));
    if let Some((prefix, length)) = demands.prefix() {
        lines.push(format!("dns64-prefix: {prefix}/{length}"));
    }
    // Its built-in zones would answer NXDOMAIN (RFC 6761, `test`).
    lines.extend(task.names.iter().map(|name| format!("local-zone: \"{name}.\" nodefault")));
    lines.extend(match task.limits {
        Limits::Shipped => vec![],
        Limits::Small => vec!["outgoing-range: 512".to_owned(), "num-queries-per-thread: 256".to_owned()],
        Limits::Raised(buffer) => vec![
            "outgoing-range: 8192".to_owned(),
            "num-queries-per-thread: 4096".to_owned(),
            format!("so-rcvbuf: {buffer}"),
        ],
    });
    lines.extend(validation(task));
    lines.extend(encryption(task, place));
    lines.extend(settings_of(demands));
    // If a key is given twice, the last one counts, so the user's options replace these.
    lines.extend(task.options.iter().cloned());
    let mut text = format!("server:\n  {}\nremote-control:\n  control-enable: no\n", lines.join("\n  "));
    for (zone, servers) in task.forwarded() {
        text.push_str(&format!("forward-zone:\n  name: \"{zone}\"\n"));
        for server in servers {
            text.push_str(&format!("  forward-addr: {}@{}\n", server.ip(), server.port()));
        }
    }
    for zone in &demands.policies {
        text.push_str(&format!("rpz:\n  name: \"{}.\"\n  zonefile: \"{}\"\n", zone.name, zone.file));
    }
    LaunchPlan {
        command: [place.program, "-d", "-c", &format!("{folder}/unbound.conf")].map(str::to_owned).to_vec(),
        files: [("unbound.conf".to_owned(), text)].into(),
        ..LaunchPlan::default()
    }
}

/// The modules in their order.
fn modules(task: &Task) -> String {
    let modules = [
        (!task.demands.policies.is_empty(), "respip"),
        (!task.demands.prefixes.is_empty(), "dns64"),
        (task.validation.anchors().is_some(), "validator"),
        (true, "iterator"),
    ];
    modules.into_iter().filter(|(is_used, _)| *is_used).map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}

/// Access control by client network. The longest match decides, and of two entries for one network the last one of the file; loopback
/// networks are allowed by default.
fn access(demands: &Demands) -> Vec<String> {
    let Some(allow) = &demands.allow else {
        return ["::0/0", "0.0.0.0/0"].map(|network| format!("access-control: {network} allow")).into();
    };
    let others = ["::/0", "0.0.0.0/0", "127.0.0.0/8", "::1/128"];
    let refused = others.map(|network| format!("access-control: {network} refuse"));
    let allowed = allow.iter().map(|network| format!("access-control: {network} allow"));
    refused.into_iter().chain(allowed).collect()
}

fn validation(task: &Task) -> Vec<String> {
    let Some(anchors) = task.validation.anchors() else { return vec![] };
    let mut lines: Vec<String> =
        anchors.positive.iter().map(|anchor| format!("trust-anchor: \"{anchor}\"")).collect();
    lines.extend(anchors.negative.iter().map(|zone| format!("domain-insecure: \"{zone}\"")));
    if anchors.is_strict {
        lines
            .extend(["aggressive-nsec: no", "val-sig-skew-min: 0", "val-sig-skew-max: 0"].map(str::to_owned));
    }
    lines
}

fn encryption(task: &Task, place: &Place) -> Vec<String> {
    let folder = place.folder.display();
    let key = match task.encrypted {
        Some(Encrypted::Tls) => "tls-port",
        Some(Encrypted::Https) => "https-port",
        Some(Encrypted::Quic) | None => return vec![],
    };
    vec![
        format!("{key}: {}", task.port()),
        format!("tls-service-pem: \"{folder}/{CERTIFICATE_FILE}\""),
        format!("tls-service-key: \"{folder}/{KEY_FILE}\""),
    ]
}

/// Lines for what is demanded beside DNS64 itself.
fn settings_of(demands: &Demands) -> Vec<String> {
    let switches: [(bool, &[&str]); 3] = [
        // Its built-in zones for private reverse names (RFC 6303) would answer before the upstream is asked.
        (
            demands.special_names && !demands.empty_zones,
            &["unblock-lan-zones: yes", "insecure-lan-zones: yes"],
        ),
        (demands.excludes_all_aaaa(), &["dns64-synthall: yes"]),
        (demands.stale, &["serve-expired: yes"]),
    ];
    let switched = switches.into_iter().filter(|(is_on, _)| *is_on).flat_map(|(_, lines)| lines);
    let mut lines: Vec<String> = switched.map(|line| (*line).to_owned()).collect();
    lines.extend(demands.records.iter().map(|record| format!("local-data: '{record}'")));
    lines.extend(demands.block.iter().map(|name| format!("local-zone: \"{name}.\" always_nxdomain")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_that_may_ask_come_behind_those_that_may_not() {
        let allow = Some(vec!["::1/128".to_owned()]);
        let lines = access(&Demands { allow, ..Demands::default() });
        let places = ["refuse", "allow"].map(|verdict| {
            lines.iter().position(|line| *line == format!("access-control: ::1/128 {verdict}"))
        });
        assert_eq!(places, [Some(3), Some(4)]);
    }
}
