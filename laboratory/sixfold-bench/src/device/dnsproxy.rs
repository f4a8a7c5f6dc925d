//! AdGuard's dnsproxy.

use super::{LaunchPlan, RECEIVE_BUFFER, Template, TemplateInput};

pub(super) const TEMPLATE: Template = Template {
    name: "dnsproxy",
    program: "dnsproxy",
    remedy: "install it with `go install github.com/AdguardTeam/dnsproxy@latest`",
    version: &["--version"],
    version_prefix: "dnsproxy",
    encrypted: &[],
    plan,
};

fn plan(input: &TemplateInput) -> LaunchPlan {
    let settings = input.settings;
    let (prefix, length) = settings.prefix;
    // dnsproxy caches only if configured, and needs upstreams for the reverse names of the prefix. GOMAXPROCS bounds
    // the threads that run Go code. The user's options are arguments.
    let mut command = vec![
        input.program.to_owned(),
        format!("--listen={}", settings.listen.ip()),
        format!("--port={}", settings.listen.port()),
        format!("--upstream={}", settings.upstream),
        "--dns64".to_owned(),
        format!("--dns64-prefix={prefix}/{length}"),
        format!("--private-rdns-upstream={}", settings.upstream),
        "--cache".to_owned(),
    ];
    if !settings.as_shipped {
        command.push(format!("--udp-buf-size={RECEIVE_BUFFER}"));
    }
    command.extend(settings.options.iter().cloned());
    LaunchPlan {
        command,
        environment: [("GOMAXPROCS".to_owned(), settings.workers.to_string())].into(),
        ..LaunchPlan::default()
    }
}
