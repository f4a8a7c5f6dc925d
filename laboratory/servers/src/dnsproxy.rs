//! AdGuard's dnsproxy, which is configured by arguments.

use crate::demands::{Lack, Prefix};
use crate::process::Ready;
use crate::recipe::{LaunchPlan, Place, Recipe};
use crate::task::{Limits, Task};

pub(crate) const RECIPE: Recipe = Recipe {
    name: "dnsproxy",
    program: "dnsproxy",
    remedy: "install it with `go install github.com/AdguardTeam/dnsproxy@latest`",
    version: &["--version"],
    version_prefix: "dnsproxy",
    encrypted: &[],
    ready: Ready::Answer,
    lacks: Some(&[Lack::OptionsOfBind, Lack::Translation, Lack::Exclusion]),
    plan,
};

fn plan(task: &Task, place: &Place) -> LaunchPlan {
    let demands = &task.demands;
    let mut command = vec![place.program.to_owned()];
    command.extend(task.addresses().map(|address| format!("--listen={address}")));
    command.push(format!("--port={}", task.port()));
    for (zone, servers) in task.forwarded() {
        let scope = if zone == "." { String::new() } else { format!("[/{zone}/]") };
        command.extend(servers.iter().map(|server| format!("--upstream={scope}{server}")));
    }
    if !demands.prefixes.is_empty() {
        command.push("--dns64".to_owned());
        // It needs upstreams for the reverse names of the prefix.
        command.extend(task.forwarders.iter().map(|server| format!("--private-rdns-upstream={server}")));
    }
    let prefix = |(prefix, length): &Prefix| format!("--dns64-prefix={prefix}/{length}");
    command.extend(demands.prefixes.iter().map(prefix));
    // It caches only if configured.
    command.push("--cache".to_owned());
    if let Limits::Raised(buffer) = task.limits {
        command.push(format!("--udp-buf-size={buffer}"));
    }
    if demands.stale {
        command.push("--cache-optimistic".to_owned());
    }
    command.extend(task.options.iter().cloned());
    LaunchPlan {
        command,
        // Bounds the threads that run Go code.
        environment: [("GOMAXPROCS".to_owned(), task.workers.to_string())].into(),
        ..LaunchPlan::default()
    }
}
