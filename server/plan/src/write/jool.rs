//! jool.conf of Jool 4.1, as its documentation of the atomic configuration describes it. It is JSON; `comment` is ignored everywhere.

use crate::PlannedFile;
use crate::address::Network;
use crate::agreed::Agreed;
use crate::header::header;
use crate::input::Input;
use crate::part::Part;

/// Ports of an address that this machine uses itself: Linux takes 32768 to 60999 for its own connections.
const SHARED_PORTS: &str = "61001-65535";

/// The file.
pub fn file(input: &Input, agreed: &Agreed) -> PlannedFile {
    let prefix =
        agreed.prefix.map(|prefix| format!("{}/{}", prefix.address(), prefix.length())).unwrap_or_default();
    let pool = match &input.network.pool {
        Some(pool) => format!(",\n  \"pool4\": [\n{}\n  ]", entries(input, pool)),
        None => String::new(),
    };
    let note = match input.network.pool {
        Some(_) => "",
        None => {
            " Without pool4, translated packets have the addresses of this machine, with the ports 61001 to 65535."
        }
    };
    let text = format!(
        "{{\n  \"comment\": \"{}{note}\",\n  \"instance\": \"default\",\n  \"framework\": \"netfilter\",\n  \
         \"global\": {{\n    \
         \"pool6\": \"{prefix}\",\n    \"manually-enabled\": true\n  }}{pool}\n}}\n",
        header(&input.source)
    );
    let explanation = "Jool translates between IPv6 and IPv4 in the kernel: it takes packets to the prefix of the \
                       server's answers, and all clients \
                       share its IPv4 addresses. Its prefix is the one that Sixfold embeds into and that router \
                       advertisements announce.";
    PlannedFile {
        part: Some(Part::Jool),
        path: "etc/jool/jool.conf".to_owned(),
        text,
        explanation: explanation.to_owned(),
    }
}

/// The pool for each protocol. Of an address of this machine only ports that it does not take for itself are used.
fn entries(input: &Input, pool: &Network) -> String {
    let own = input.network.interfaces.iter().flat_map(|interface| interface.ipv4());
    let is_shared = own.into_iter().any(|(_, entry)| pool.has(entry.address));
    let entry = |protocol: &str, ports: &str| {
        format!("    {{ \"protocol\": \"{protocol}\", \"prefix\": \"{pool}\", \"port range\": \"{ports}\" }}")
    };
    let ports = if is_shared { SHARED_PORTS } else { "1024-65535" };
    [
        entry("TCP", ports),
        entry("UDP", ports),
        entry("ICMP", if is_shared { SHARED_PORTS } else { "0-65535" }),
    ]
    .join(",\n")
}
