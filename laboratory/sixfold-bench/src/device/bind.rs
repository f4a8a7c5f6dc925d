//! BIND's `named`.

use super::config_lines::merge_options;
use super::program::release;
use super::{CERTIFICATE_FILE, KEY_FILE, LaunchPlan, RECEIVE_BUFFER, Template, TemplateInput, TrustAnchor};
use measure::order::Transport;

pub(super) const TEMPLATE: Template = Template {
    name: "bind",
    program: "named",
    remedy: "install it with `apt-get install bind9`",
    version: &["-v"],
    version_prefix: "BIND",
    encrypted: &[Transport::Tls, Transport::Https],
    plan,
};

fn plan(input: &TemplateInput) -> LaunchPlan {
    let (settings, folder) = (input.settings, input.folder.display());
    let (prefix, length) = settings.prefix;
    let (listen, upstream) = (settings.listen, settings.upstream);
    let (family, other) = if listen.is_ipv6() { ("-v6", "") } else { ("", "-v6") };
    let over = match settings.transport {
        Transport::Tls => " tls local",
        Transport::Https => " tls local http default",
        _ => "",
    };
    let tls = match over {
        "" => String::new(),
        _ => format!(
            "tls local {{\n  cert-file \"{folder}/{CERTIFICATE_FILE}\";\n  key-file \"{folder}/{KEY_FILE}\";\n}};\n"
        ),
    };
    // BIND's built-in empty zones (RFC 6303) would answer before the forwarder is asked.
    let mut ours = vec![
        format!("directory \"{folder}\";"),
        "pid-file none;".to_owned(),
        "session-keyfile none;".to_owned(),
        format!("listen-on{family} port {}{over} {{ {}; }};", listen.port(), listen.ip()),
        format!("listen-on{other} {{ none; }};"),
        "allow-query { any; };".to_owned(),
        "recursion yes;".to_owned(),
        "allow-recursion { any; };".to_owned(),
        "allow-query-cache { any; };".to_owned(),
        "forward only;".to_owned(),
        format!("forwarders {{ {} port {}; }};", upstream.ip(), upstream.port()),
        format!("dnssec-validation {};", if settings.trust_anchor.is_some() { "yes" } else { "no" }),
        "empty-zones-enable no;".to_owned(),
        "querylog no;".to_owned(),
        format!("dns64 {prefix}/{length} {{ clients {{ any; }}; }};"),
    ];
    if !settings.as_shipped {
        ours.push("recursive-clients 10000;".to_owned());
        if release(input.version, "BIND ") >= (9, 18) {
            ours.push(format!("udp-receive-buffer {RECEIVE_BUFFER};"));
        }
    }
    let lines = merge_options(ours, &settings.options);
    let anchors = settings.trust_anchor.as_ref().map_or_else(String::new, |anchor| {
        let TrustAnchor { zone, key_tag, algorithm, digest } = anchor;
        format!("trust-anchors {{\n  \"{zone}\" static-ds {key_tag} {algorithm} 2 \"{digest}\";\n}};\n")
    });
    // The log keeps warnings and errors: they explain a failed start.
    let text = format!(
        "{tls}{anchors}options {{\n  {}\n}};\ncontrols {{ }};\n\
         logging {{\n  channel errors {{ stderr; severity warning; }};\n  category default {{ errors; }};\n\
         \x20 category lame-servers {{ null; }};\n  category unmatched {{ null; }};\n}};\n",
        lines.join("\n  ")
    );
    LaunchPlan {
        command: vec![
            input.program.to_owned(),
            "-f".to_owned(),
            // Until named has read its configuration, it would log to the system's log.
            "-L".to_owned(),
            "/dev/stderr".to_owned(),
            "-n".to_owned(),
            settings.workers.to_string(),
            "-c".to_owned(),
            format!("{folder}/named.conf"),
        ],
        files: [("named.conf".to_owned(), text)].into(),
        ..LaunchPlan::default()
    }
}
