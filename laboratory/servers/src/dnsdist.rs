//! dnsdist, a balancer in front of servers. It has a default for each setting of a server behind it, so a caller that needs another one
//! (PROXY headers, health checks) writes its own `newServer` as an option.

use crate::process::Ready;
use crate::recipe::{LaunchPlan, Place, Recipe};
use crate::task::{CERTIFICATE_FILE, Encrypted, KEY_FILE, Task};

/// The recipe.
pub const RECIPE: Recipe = Recipe {
    name: "dnsdist",
    program: "dnsdist",
    remedy: "install it with `apt-get install dnsdist`",
    version: &["--version"],
    version_prefix: "dnsdist",
    encrypted: &[Encrypted::Tls, Encrypted::Https],
    ready: Ready::Connection,
    lacks: None,
    plan,
};

fn plan(task: &Task, place: &Place) -> LaunchPlan {
    let folder = place.folder.display();
    let keys = format!("'{folder}/{CERTIFICATE_FILE}', '{folder}/{KEY_FILE}'");
    let everybody = vec!["::/0".to_owned(), "0.0.0.0/0".to_owned()];
    let allow = task.demands.allow.as_ref().unwrap_or(&everybody);
    let allow: Vec<String> = allow.iter().map(|network| format!("'{network}'")).collect();
    let mut lines = vec!["setSecurityPollSuffix('')".to_owned(), format!("setACL({{{}}})", allow.join(", "))];
    if task.encrypted.is_some() {
        // Without a plain listener it would take port 53.
        lines.push("setLocal('127.0.0.1:0')".to_owned());
    }
    for (number, address) in task.listen.iter().enumerate() {
        lines.push(match task.encrypted {
            Some(Encrypted::Tls) => format!("addTLSLocal('{address}', {keys})"),
            Some(Encrypted::Https | Encrypted::Quic) => {
                format!("addDOHLocal('{address}', {keys}, '/dns-query')")
            }
            None if number == 0 => format!("setLocal('{address}')"),
            None => format!("addLocal('{address}')"),
        });
    }
    lines.extend(task.forwarders.iter().map(|server| format!("newServer({{address='{server}'}}):setUp()")));
    lines.extend(task.options.iter().cloned());
    let file = format!("{folder}/dnsdist.conf");
    let command = [place.program, "--supervised", "--disable-syslog", "-C", &file].map(str::to_owned);
    let files = [("dnsdist.conf".to_owned(), lines.join("\n") + "\n")].into();
    LaunchPlan { command: command.to_vec(), files, ..LaunchPlan::default() }
}
