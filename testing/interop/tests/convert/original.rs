//! The original servers: their configurations of the corpus, adapted to a folder of the test, and how they are started.

use servers::{Place, Task};
use sixfold_interop::{Debian13, Scratch};
use std::net::SocketAddr;
use std::path::Path;

/// The PowerDNS Recursor of Debian 13, whose configuration is YAML. The one of Debian 12 knows only the older form.
pub const RECURSOR_5: &str = "pdns_recursor of Debian 13";

/// Environment variable that is set if Debian 13 is there, for the test in its namespace, which reaches no mirror.
pub const UNPACKED: &str = "SIXFOLD_DEBIAN_13";

/// Command line of the original server with the file of the corpus, whose adapted copy lies in `folder`. A recursor listens on `ask`
/// only: the port of its unspecified addresses is also that of the upstream.
pub fn command(server: &str, file: &Path, ask: SocketAddr, folder: &Scratch) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("the corpus");
    let place = folder.path().display();
    let (recipe, text) = match server {
        "named" => {
            let text = text
                .replace("/var/cache/bind", &place.to_string())
                .replace("/var/log", &place.to_string())
                .replacen("options {", "controls { };\noptions { pid-file none; session-keyfile none;", 1);
            (&servers::BIND, text)
        }
        "unbound" => {
            let text = format!(
                "{text}\nserver:\n do-daemonize: no\n username: \"\"\n chroot: \"\"\n directory: \"{place}\"\n pidfile: \"\"\n \
                 use-syslog: no\n logfile: \"\"\n do-not-query-localhost: no\nremote-control:\n control-enable: no\n"
            );
            (&servers::UNBOUND, text)
        }
        "pdns_recursor" => (&servers::POWERDNS, recursor_4(&text, file, ask, folder)),
        RECURSOR_5 => return recursor_5(&text, ask, folder),
        _ => (&servers::COREDNS, text),
    };
    // The recipe's command line, with this configuration in the place of its own.
    let place = Place { program: recipe.program, version: "", folder: folder.path() };
    let plan = recipe.plan(&Task { workers: 1, ..Task::default() }, &place);
    plan.files.keys().for_each(|name| drop(folder.write(name, &text)));
    plan.command
}

/// The files that the configuration names lie beside it.
fn recursor_4(text: &str, file: &Path, ask: SocketAddr, folder: &Scratch) -> String {
    let place = folder.path().display();
    let mut text = text.to_owned();
    for beside in ["script.lua", "script.zones"].into_iter().filter(|beside| text.contains(*beside)) {
        let content = std::fs::read_to_string(file.with_file_name(beside)).expect("the corpus");
        folder.write(beside, &content);
    }
    for beside in ["script.lua", "script.zones"] {
        text = text.replace(&format!("={beside}"), &format!("={place}/{beside}"));
    }
    format!(
        "{text}\nsocket-dir={place}\ndaemon=no\nwrite-pid=no\nsetuid=\nsetgid=\nwebserver=no\ndont-query=\n\
         security-poll-suffix=\ndisable-syslog=yes\nlocal-address={ask}\n"
    )
}

/// Settings of the command line hold before those of the file.
fn recursor_5(text: &str, ask: SocketAddr, folder: &Scratch) -> Vec<String> {
    folder.write("recursor.yml", text);
    let listen = format!("--local-address={ask}");
    let argv = [
        "/usr/sbin/pdns_recursor",
        "--config-dir=/mnt",
        "--socket-dir=/run",
        "--daemon=no",
        "--write-pid=no",
        "--setuid=",
        "--setgid=",
        "--webserver=no",
        "--dont-query=",
        "--security-poll-suffix=",
        "--disable-syslog=yes",
        &listen,
    ];
    Debian13::get().expect("it has been unpacked").command_in_namespace(folder.path(), &argv)
}
