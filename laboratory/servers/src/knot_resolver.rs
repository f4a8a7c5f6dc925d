//! Knot Resolver's `kresd`.

use crate::demands::{Demands, Lack, Prefix};
use crate::process::Ready;
use crate::recipe::{LaunchPlan, Place, Recipe};
use crate::task::{CERTIFICATE_FILE, Encrypted, KEY_FILE, Task};
use std::net::SocketAddr;

/// The recipe.
pub const RECIPE: Recipe = Recipe {
    name: "knot-resolver",
    program: "kresd",
    remedy: "install it with `apt-get install knot-resolver`",
    version: &["--version"],
    version_prefix: "Knot Resolver",
    encrypted: &[Encrypted::Tls, Encrypted::Https],
    ready: Ready::Answer,
    lacks: Some(&[Lack::Prefixes, Lack::Lengths, Lack::OptionsOfBind, Lack::Trust, Lack::Translation]),
    plan,
};

fn plan(task: &Task, place: &Place) -> LaunchPlan {
    let (demands, folder) = (&task.demands, place.folder.display());
    let kind = match task.encrypted {
        Some(Encrypted::Tls) => "tls",
        Some(Encrypted::Https) => "doh2",
        Some(Encrypted::Quic) | None => "dns",
    };
    let mut lines = Vec::new();
    if kind != "dns" {
        lines.push(format!("net.tls('{folder}/{CERTIFICATE_FILE}', '{folder}/{KEY_FILE}')"));
    }
    let listen = |address: String| format!("net.listen('{address}', {}, {{ kind = '{kind}' }})", task.port());
    lines.extend(task.addresses().map(listen));
    // Queries that it would send on its own account (root servers, time in signatures) are switched off. Without trust anchors it validates
    // nothing.
    let modules = if demands.prefixes.is_empty() { "'policy'" } else { "'policy', 'dns64'" };
    lines.extend([
        format!("modules = {{ {modules} }}"),
        "modules.unload('priming')".to_owned(),
        "modules.unload('detect_time_skew')".to_owned(),
        "trust_anchors.remove('.')".to_owned(),
    ]);
    lines.extend(demands.prefix().map(|prefix| dns64(prefix, demands)));
    let (anchors, rules) = validation(task);
    lines.extend(rules);
    lines.extend(task.forwarded().map(forward));
    lines.push("log_level('warning')".to_owned());
    lines.extend(anchors);
    if demands.stale {
        lines.push("modules.load('serve_stale < cache')".to_owned());
    }
    lines.extend(task.options.iter().cloned());
    // kresd has one thread. Further workers are further processes, which share the port and the cache.
    let kresd = format!("'{}' -n -c '{folder}/kresd.conf' '{folder}'", place.program);
    let command = if task.workers <= 1 {
        let config = format!("{folder}/kresd.conf");
        [place.program, "-n", "-c", &config, &folder.to_string()].map(str::to_owned).to_vec()
    } else {
        let script = format!("for i in $(seq {}); do {kresd} & done; wait", task.workers);
        ["sh", "-c", &script].map(str::to_owned).to_vec()
    };
    let text = lines.join("\n") + "\n";
    LaunchPlan { command, files: [("kresd.conf".to_owned(), text)].into(), ..LaunchPlan::default() }
}

/// It supports prefixes of 96 bits alone; for another length the configuration has the length too, which kresd refuses with a message.
fn dns64((prefix, length): Prefix, demands: &Demands) -> String {
    let prefix = if length == 96 { prefix.to_string() } else { format!("{prefix}/{length}") };
    match &demands.exclude {
        None => format!("dns64.config('{prefix}')"),
        Some(exclude) => {
            let quoted: Vec<String> = exclude.iter().map(|network| format!("'{network}'")).collect();
            format!("dns64.config({{ prefix = '{prefix}', exclude_subnets = {{ {} }} }})", quoted.join(", "))
        }
    }
}

/// A rule that forwards the names of a zone. The rule for all names comes before the built-in rules, which deny `test.` (RFC 6761).
fn forward((zone, servers): (&str, &[SocketAddr])) -> String {
    let servers: Vec<String> =
        servers.iter().map(|server| format!("'{}@{}'", server.ip(), server.port())).collect();
    let target = format!("policy.FORWARD({{{}}})", servers.join(", "));
    match zone {
        "." => format!("policy.add(policy.all({target}))"),
        zone => format!("policy.add(policy.suffix({target}, policy.todnames({{'{zone}'}})))"),
    }
}

/// Lines with trust anchors, and rules that come before those that forward. A cache that is not used keeps no proofs.
fn validation(task: &Task) -> (Vec<String>, Vec<String>) {
    let Some(anchors) = task.validation.anchors() else { return (vec![], vec![]) };
    let mut lines: Vec<String> =
        anchors.positive.iter().map(|anchor| format!("trust_anchors.add('{anchor}')")).collect();
    if !anchors.negative.is_empty() {
        let zones: Vec<String> = anchors.negative.iter().map(|zone| format!("'{zone}'")).collect();
        lines.push(format!("trust_anchors.set_insecure({{{}}})", zones.join(", ")));
    }
    let strict = [
        "modules.unload('ta_signal_query')",
        "modules.unload('ta_update')",
        "cache.size = 20 * MB",
        "policy.add(policy.all(policy.FLAGS({'NO_CACHE'})))",
    ];
    let rules = if anchors.is_strict { &strict[..] } else { &[] };
    (lines, rules.iter().map(|rule| (*rule).to_owned()).collect())
}
