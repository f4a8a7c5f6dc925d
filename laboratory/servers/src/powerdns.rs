//! PowerDNS Recursor.

use crate::demands::{Demands, Lack, ZONE_FILE};
use crate::process::Ready;
use crate::program::release;
use crate::recipe::{LaunchPlan, Place, Recipe};
use crate::task::{Limits, Task, Validation};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

/// Settings in Lua: trust anchors and policy zones.
const LUA_FILE: &str = "settings.lua";

/// The recipe.
pub const RECIPE: Recipe = Recipe {
    name: "powerdns",
    program: "pdns_recursor",
    remedy: "install it with `apt-get install pdns-recursor`",
    version: &["--version"],
    version_prefix: "PowerDNS",
    encrypted: &[],
    ready: Ready::Answer,
    lacks: Some(&[Lack::Prefixes, Lack::Lengths, Lack::OptionsOfBind, Lack::Exclusion, Lack::Trust]),
    plan,
};

fn plan(task: &Task, place: &Place) -> LaunchPlan {
    let (demands, folder) = (&task.demands, place.folder.display());
    let addresses: Vec<String> = task.addresses().collect();
    let allow = demands.allow.as_ref().map_or_else(|| "0.0.0.0/0,::/0".to_owned(), |allow| allow.join(","));
    // By default the recursor sends no queries to private and loopback addresses (`dont-query`).
    let mut text = format!(
        "config-dir={folder}\nsocket-dir={folder}\ndaemon=no\nwrite-pid=no\nsetuid=\nsetgid=\nchroot=\n\
         local-address={}\nlocal-port={}\nallow-from={allow}\nforward-zones-recurse={}\ndont-query=\n\
         threads={}\nserve-rfc1918={}\nexport-etc-hosts=no\nwebserver=no\nsecurity-poll-suffix=\n\
         quiet=yes\nloglevel=3\ndisable-syslog=yes\nstatistics-interval=0\n",
        addresses.join(","),
        task.port(),
        forwarded(task),
        task.workers,
        if demands.empty_zones { "yes" } else { "no" },
    );
    if let Some((prefix, length)) = demands.prefix() {
        text.push_str(&format!("dns64-prefix={prefix}/{length}\n"));
    }
    // Its threads read queries from sockets of their own, as its performance guide advises. A thread holds `max-mthreads` outstanding
    // queries.
    text.push_str(match task.limits {
        Limits::Shipped => "",
        Limits::Small => "reuseport=yes\npdns-distributes-queries=no\nmax-mthreads=256\n",
        Limits::Raised(_) => "reuseport=yes\npdns-distributes-queries=no\nmax-mthreads=8192\n",
    });
    // By default it validates if a client asks for validation.
    text.push_str(match &task.validation {
        Validation::Off => "dnssec=off\n",
        Validation::Passes => "dnssec=process-no-validate\n",
        Validation::Anchors(anchors) if anchors.is_strict => {
            "dnssec=validate\naggressive-nsec-cache-size=0\nsignature-inception-skew=0\ndisable-packetcache=yes\n"
        }
        Validation::Anchors(_) => "dnssec=validate\n",
    });
    if demands.stale {
        text.push_str("serve-stale-extensions=1440\n");
    }
    let mut files = own_zones(demands, place.folder, &mut text);
    let lua = anchors(&task.validation) + &policies(demands, place.folder, &mut files);
    if !lua.is_empty() {
        text.push_str(&format!("lua-config-file={folder}/{LUA_FILE}\n"));
        files.insert(LUA_FILE.to_owned(), lua);
    }
    // If a key is given twice, the last one counts, so the user's options replace these.
    text.extend(task.options.iter().map(|option| format!("{option}\n")));
    let mut command = vec![place.program.to_owned(), format!("--config-dir={folder}")];
    if reads_yaml_by_default(place.version) {
        command.push("--enable-old-settings".to_owned());
    }
    files.insert("recursor.conf".to_owned(), text);
    LaunchPlan { command, files, ..LaunchPlan::default() }
}

/// Zones with their servers.
fn forwarded(task: &Task) -> String {
    let zone = |(zone, servers): (&str, &[SocketAddr])| {
        let servers: Vec<String> = servers.iter().map(SocketAddr::to_string).collect();
        format!("{zone}={}", servers.join(";"))
    };
    task.forwarded().map(zone).collect::<Vec<_>>().join(",")
}

/// Files of the server's own zones; their line is added to the configuration.
fn own_zones(demands: &Demands, folder: &Path, text: &mut String) -> BTreeMap<String, String> {
    let files = demands.own_zones();
    if !files.is_empty() {
        let zone =
            |file: &String| format!("{}={}/{file}", file.trim_end_matches(ZONE_FILE), folder.display());
        let zones: Vec<String> = files.keys().map(zone).collect();
        text.push_str(&format!("auth-zones={}\n", zones.join(",")));
    }
    files
}

/// Trust anchors in Lua.
fn anchors(validation: &Validation) -> String {
    let Some(anchors) = validation.anchors() else { return String::new() };
    let mut lua = "clearTA()\n".to_owned();
    for anchor in &anchors.positive {
        lua += &format!("addTA('{}', '{} {}')\n", anchor.zone, anchor.key(), anchor.digest);
    }
    lua.extend(anchors.negative.iter().map(|zone| format!("addNTA('{zone}', 'unsigned')\n")));
    lua
}

/// Policy zones in Lua.
fn policies(demands: &Demands, folder: &Path, files: &mut BTreeMap<String, String>) -> String {
    let folder = folder.display();
    let line =
        |(name, file): (&str, &str)| format!("rpzFile(\"{folder}/{file}\", {{ policyName = \"{name}\" }})\n");
    demands.policy_zones(files).into_iter().map(line).collect()
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
