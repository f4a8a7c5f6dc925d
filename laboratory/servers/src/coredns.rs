//! CoreDNS.

use crate::demands::Lack;
use crate::lines::merge_options;
use crate::process::Ready;
use crate::recipe::{LaunchPlan, Place, Recipe};
use crate::task::{CERTIFICATE_FILE, Encrypted, KEY_FILE, Task};
use std::net::SocketAddr;

/// The recipe.
pub const RECIPE: Recipe = Recipe {
    name: "coredns",
    program: "coredns",
    remedy: "install it with `go install github.com/coredns/coredns@latest`",
    version: &["--version"],
    version_prefix: "CoreDNS",
    encrypted: &[Encrypted::Tls, Encrypted::Https, Encrypted::Quic],
    ready: Ready::Answer,
    lacks: Some(&[Lack::Prefixes, Lack::OptionsOfBind, Lack::Translation, Lack::PartialExclusion]),
    plan,
};

fn plan(task: &Task, place: &Place) -> LaunchPlan {
    let (demands, folder) = (&task.demands, place.folder.display());
    let scheme = match task.encrypted {
        Some(Encrypted::Tls) => "tls://",
        Some(Encrypted::Https) => "https://",
        Some(Encrypted::Quic) => "quic://",
        None => "",
    };
    let addresses: Vec<String> = task.addresses().collect();
    let mut ours = vec![format!("bind {}", addresses.join(" "))];
    // It synthesizes for clients over IPv4 only if configured, and caches only if configured.
    if let Some((prefix, length)) = demands.prefix() {
        let all = if demands.excludes_all_aaaa() { "\n    translate_all" } else { "" };
        ours.push(format!("dns64 {{\n    prefix {prefix}/{length}\n    allow_ipv4{all}\n  }}"));
    }
    ours.push(if demands.stale { "cache {\n    serve_stale\n  }" } else { "cache" }.to_owned());
    ours.extend(task.forwarded().map(|(zone, servers)| {
        let servers: Vec<String> = servers.iter().map(SocketAddr::to_string).collect();
        format!("forward {zone} {}", servers.join(" "))
    }));
    if !scheme.is_empty() {
        ours.push(format!("tls {folder}/{CERTIFICATE_FILE} {folder}/{KEY_FILE}"));
    }
    let lines = merge_options(ours, &task.options);
    let text = format!("{scheme}.:{} {{\n  {}\n}}\n", task.port(), lines.join("\n  "));
    let command = [place.program, "-quiet", "-conf", &format!("{folder}/Corefile")].map(str::to_owned);
    LaunchPlan {
        command: command.to_vec(),
        files: [("Corefile".to_owned(), text)].into(),
        // Bounds the threads that run Go code.
        environment: [("GOMAXPROCS".to_owned(), task.workers.to_string())].into(),
        ..LaunchPlan::default()
    }
}
