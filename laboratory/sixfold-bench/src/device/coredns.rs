//! CoreDNS.

use super::config_lines::merge_options;
use super::{CERTIFICATE_FILE, KEY_FILE, LaunchPlan, Template, TemplateInput};
use measure::order::Transport;

pub(super) const TEMPLATE: Template = Template {
    name: "coredns",
    program: "coredns",
    remedy: "install it with `go install github.com/coredns/coredns@latest`",
    version: &["--version"],
    version_prefix: "CoreDNS",
    encrypted: &[Transport::Tls, Transport::Https, Transport::Quic],
    plan,
};

fn plan(input: &TemplateInput) -> LaunchPlan {
    let (settings, folder) = (input.settings, input.folder.display());
    let (prefix, length) = settings.prefix;
    let scheme = match settings.transport {
        Transport::Tls => "tls://",
        Transport::Https => "https://",
        Transport::Quic => "quic://",
        Transport::Udp | Transport::Tcp | Transport::TcpReuse | Transport::Tfo => "",
    };
    // CoreDNS caches only if configured, and synthesizes for clients over IPv4 only if configured. GOMAXPROCS bounds
    // the threads that run Go code.
    let mut ours = vec![
        format!("bind {}", settings.listen.ip()),
        format!("dns64 {{\n    prefix {prefix}/{length}\n    allow_ipv4\n  }}"),
        "cache".to_owned(),
        format!("forward . {}", settings.upstream),
    ];
    if !scheme.is_empty() {
        ours.push(format!("tls {folder}/{CERTIFICATE_FILE} {folder}/{KEY_FILE}"));
    }
    let text = format!(
        "{scheme}.:{} {{\n  {}\n}}\n",
        settings.listen.port(),
        merge_options(ours, &settings.options).join("\n  ")
    );
    LaunchPlan {
        command: vec![
            input.program.to_owned(),
            "-quiet".to_owned(),
            "-conf".to_owned(),
            format!("{folder}/Corefile"),
        ],
        files: [("Corefile".to_owned(), text)].into(),
        environment: [("GOMAXPROCS".to_owned(), settings.workers.to_string())].into(),
        ..LaunchPlan::default()
    }
}
