//! Knot Resolver's `kresd`.

use super::{CERTIFICATE_FILE, KEY_FILE, LaunchPlan, Template, TemplateInput};
use measure::order::Transport;

pub(super) const TEMPLATE: Template = Template {
    name: "knot-resolver",
    program: "kresd",
    remedy: "install it with `apt-get install knot-resolver`",
    version: &["--version"],
    version_prefix: "Knot Resolver",
    encrypted: &[Transport::Tls, Transport::Https],
    plan,
};

fn plan(input: &TemplateInput) -> LaunchPlan {
    let (settings, folder) = (input.settings, input.folder.display());
    let (prefix, length) = settings.prefix;
    // A rule for all names comes before the built-in rules, which deny `test.` (RFC 6761). Without trust anchors Knot
    // Resolver validates nothing. It supports prefixes of 96 bits alone; for another length the configuration has the
    // length too, which kresd refuses with a message. Queries that it would send to the authority on its own account
    // (root servers, time in signatures) are switched off.
    let prefix = if length == 96 { prefix.to_string() } else { format!("{prefix}/{length}") };
    let kind = match settings.transport {
        Transport::Tls => "tls",
        Transport::Https => "doh2",
        _ => "dns",
    };
    let certificate = match kind {
        "dns" => String::new(),
        _ => format!("net.tls('{folder}/{CERTIFICATE_FILE}', '{folder}/{KEY_FILE}')\n"),
    };
    let mut text = format!(
        "{certificate}net.listen('{}', {}, {{ kind = '{kind}' }})\n\
         modules = {{ 'policy', 'dns64' }}\n\
         modules.unload('priming')\n\
         modules.unload('detect_time_skew')\n\
         trust_anchors.remove('.')\n\
         dns64.config('{prefix}')\n\
         policy.add(policy.all(policy.FORWARD({{'{}@{}'}})))\n\
         log_level('warning')\n",
        settings.listen.ip(),
        settings.listen.port(),
        settings.upstream.ip(),
        settings.upstream.port(),
    );
    if let Some(anchor) = &settings.trust_anchor {
        text.push_str(&format!("trust_anchors.add('{anchor}')\n"));
    }
    for option in &settings.options {
        text.push_str(option);
        text.push('\n');
    }
    // kresd has one thread. Further workers are further processes, which share the port and the cache.
    let kresd = format!("'{}' -n -c '{folder}/kresd.conf' '{folder}'", input.program);
    let command = if settings.workers <= 1 {
        let config = format!("{folder}/kresd.conf");
        [input.program, "-n", "-c", &config, &folder.to_string()].map(str::to_owned).to_vec()
    } else {
        let script = format!("for i in $(seq {}); do {kresd} & done; wait", settings.workers);
        ["sh", "-c", &script].map(str::to_owned).to_vec()
    };
    LaunchPlan { command, files: [("kresd.conf".to_owned(), text)].into(), ..LaunchPlan::default() }
}
