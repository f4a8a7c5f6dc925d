//! PowerDNS Recursor.

use super::program::release;
use super::{LaunchPlan, Template, TemplateInput, TrustAnchor};
use std::collections::BTreeMap;

/// File of its trust anchors, in Lua.
const ANCHORS_FILE: &str = "anchors.lua";

pub(super) const TEMPLATE: Template = Template {
    name: "powerdns",
    program: "pdns_recursor",
    remedy: "install it with `apt-get install pdns-recursor`",
    version: &["--version"],
    version_prefix: "PowerDNS",
    encrypted: &[],
    plan,
};

fn plan(input: &TemplateInput) -> LaunchPlan {
    let (settings, folder) = (input.settings, input.folder.display());
    let (prefix, length) = settings.prefix;
    // By default the recursor sends no queries to private and loopback addresses (`dont-query`). Its threads read
    // queries from sockets of their own, as its performance guide advises. A thread holds `max-mthreads` outstanding
    // queries.
    let mut text = format!(
        "config-dir={folder}\nsocket-dir={folder}\ndaemon=no\nwrite-pid=no\nsetuid=\nsetgid=\nchroot=\n\
         local-address={}\nlocal-port={}\nallow-from=0.0.0.0/0,::/0\n\
         forward-zones-recurse=.={}\ndont-query=\ndns64-prefix={prefix}/{length}\ndnssec={}\n\
         threads={}\n{}\
         serve-rfc1918=no\nexport-etc-hosts=no\nwebserver=no\nsecurity-poll-suffix=\n\
         quiet=yes\nloglevel=3\ndisable-syslog=yes\nstatistics-interval=0\n",
        settings.listen.ip(),
        settings.listen.port(),
        settings.upstream,
        if settings.trust_anchor.is_some() { "validate" } else { "off" },
        settings.workers,
        if settings.as_shipped {
            ""
        } else {
            "reuseport=yes\npdns-distributes-queries=no\nmax-mthreads=8192\n"
        },
    );
    let mut files = BTreeMap::new();
    if let Some(TrustAnchor { zone, key_tag, algorithm, digest }) = &settings.trust_anchor {
        text.push_str(&format!("lua-config-file={folder}/{ANCHORS_FILE}\n"));
        let lua = format!("clearTA()\naddTA('{zone}', '{key_tag} {algorithm} 2 {digest}')\n");
        files.insert(ANCHORS_FILE.to_owned(), lua);
    }
    // If a key is given twice, the last one counts, so the user's options replace the template's.
    for option in &settings.options {
        text.push_str(option);
        text.push('\n');
    }
    let mut command = vec![input.program.to_owned(), format!("--config-dir={folder}")];
    if reads_yaml_by_default(input.version) {
        command.push("--enable-old-settings".to_owned());
    }
    files.insert("recursor.conf".to_owned(), text);
    LaunchPlan { command, files, ..LaunchPlan::default() }
}

/// Returns true if this version reads YAML by default: since 5.2.
fn reads_yaml_by_default(version: &str) -> bool {
    release(version, "Recursor ") >= (5, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_read_yaml_are_told_not_to() {
        for (version, yaml) in [
            ("Nov 21 14:38:30 PowerDNS Recursor 4.8.8 (C) 2001-2022 PowerDNS.COM BV", false),
            ("PowerDNS Recursor 5.1.9 (C)", false),
            ("PowerDNS Recursor 5.2.0-rc1 (C)", true),
            ("PowerDNS Recursor 10.0", true),
            ("", false),
        ] {
            assert_eq!(reads_yaml_by_default(version), yaml, "{version}");
        }
    }
}
