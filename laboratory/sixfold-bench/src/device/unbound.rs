//! Unbound.

use super::{CERTIFICATE_FILE, KEY_FILE, LaunchPlan, RECEIVE_BUFFER, Template, TemplateInput};
use measure::order::Transport;

pub(super) const TEMPLATE: Template = Template {
    name: "unbound",
    program: "unbound",
    remedy: "install it with `apt-get install unbound`",
    version: &["-V"],
    version_prefix: "Version",
    encrypted: &[Transport::Tls, Transport::Https],
    plan,
};

fn plan(input: &TemplateInput) -> LaunchPlan {
    let (settings, folder) = (input.settings, input.folder.display());
    let (prefix, length) = settings.prefix;
    let (listen, upstream) = (settings.listen, settings.upstream);
    // `test` is one of Unbound's built-in local zones (RFC 6761), which would answer NXDOMAIN; no query asks for the
    // other ones (private reverse names). The authority may be on the loopback interface, to which Unbound sends no
    // queries by default.
    let mut text = format!(
        "server:\n  interface: {}@{}\n  access-control: ::0/0 allow\n  access-control: 0.0.0.0/0 allow\n\
         \x20 do-daemonize: no\n  username: \"\"\n  chroot: \"\"\n  directory: \"{folder}\"\n  pidfile: \"\"\n\
         \x20 use-syslog: no\n  logfile: \"\"\n  verbosity: 0\n  log-queries: no\n\
         \x20 num-threads: {}\n  so-reuseport: yes\n\
         \x20 module-config: \"dns64 {}iterator\"\n  dns64-prefix: {prefix}/{length}\n\
         \x20 do-not-query-localhost: no\n  local-zone: \"test.\" nodefault\n  local-zone: \"{}.\" nodefault\n\
         {}",
        listen.ip(),
        listen.port(),
        settings.workers,
        if settings.trust_anchor.is_some() { "validator " } else { "" },
        settings.zone,
        if settings.as_shipped {
            String::new()
        } else {
            format!("  outgoing-range: 8192\n  num-queries-per-thread: 4096\n  so-rcvbuf: {RECEIVE_BUFFER}\n")
        },
    );
    if let Some(anchor) = &settings.trust_anchor {
        text.push_str(&format!("  trust-anchor: \"{anchor}\"\n"));
    }
    let encrypted = match settings.transport {
        Transport::Tls => Some("tls-port"),
        Transport::Https => Some("https-port"),
        _ => None,
    };
    if let Some(port) = encrypted {
        text.push_str(&format!(
            "  {port}: {}\n  tls-service-pem: \"{folder}/{CERTIFICATE_FILE}\"\n  tls-service-key: \"{folder}/{KEY_FILE}\"\n",
            listen.port()
        ));
    }
    // If a key is given twice, the last one counts, so the user's options replace the template's.
    for option in &settings.options {
        text.push_str(&format!("  {option}\n"));
    }
    text.push_str(&format!(
        "remote-control:\n  control-enable: no\nforward-zone:\n  name: \".\"\n  forward-addr: {}@{}\n",
        upstream.ip(),
        upstream.port()
    ));
    LaunchPlan {
        command: vec![
            input.program.to_owned(),
            "-d".to_owned(),
            "-c".to_owned(),
            format!("{folder}/unbound.conf"),
        ],
        files: [("unbound.conf".to_owned(), text)].into(),
        ..LaunchPlan::default()
    }
}
