//! Client addresses that the machine does not have. A network namespace has them on its loopback device; server,
//! upstream and client all run in it.
//!
//! A process cannot enter a new namespace without a system call that Rust calls unsafe, so the program is executed
//! once more under `unshare`. The namespace lives as long as the processes in it, and with `--kill-child` these end
//! with `unshare`: nothing is left behind. It is a part of `sixfold-bench conform`, so it is not that of the tests (`testing/kit`).

use std::ffi::OsStr;
use std::net::IpAddr;
use std::process::{Command, ExitStatus, Stdio};

/// Environment variable that is set for the program inside the namespace.
const INSIDE: &str = "SIXFOLD_CONFORM_NAMESPACE";

/// Shell script that brings the loopback device up, adds the addresses, and executes the program. `nodad`: an address
/// under duplicate address detection (RFC 4862 section 5.4) cannot be used yet.
const ENTER: &str = r#"
set -e
ip link set lo up
for address in $ADDRESSES; do
    case $address in
        *:*) ip address add "$address/128" dev lo nodad ;;
        *) ip address add "$address/32" dev lo ;;
    esac
done
exec "$@"
"#;

/// Result of [`enter`].
#[derive(Debug)]
pub enum Entry {
    /// This process is inside the namespace: go on.
    Inside,
    /// This process is outside, and the program inside has ended.
    Done(ExitStatus),
    /// No namespace can be had; the reason. Go on without the addresses.
    Unavailable(String),
}

/// Executes this program once more inside a namespace with `addresses`, with `arguments` and the additional variables
/// of `environment`. Does nothing if this process is already inside, or if no namespace can be had.
pub fn enter(addresses: &[IpAddr], arguments: &[&str], environment: &[(&str, &OsStr)]) -> Entry {
    if std::env::var_os(INSIDE).is_some() {
        return Entry::Inside;
    }
    if let Err(reason) = possible() {
        return Entry::Unavailable(format!("no network namespace: {reason}"));
    }
    let Ok(program) = std::env::current_exe() else {
        return Entry::Unavailable("this program's own file is not known".to_owned());
    };
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let mut command = unshare();
    command.args(["sh", "-c", ENTER, "sh"]).arg(program).args(arguments);
    command.env("ADDRESSES", addresses.join(" ")).env(INSIDE, "1").envs(environment.iter().copied());
    match command.status() {
        Ok(status) => Entry::Done(status),
        Err(error) => Entry::Unavailable(format!("no network namespace: unshare: {error}")),
    }
}

/// True if every machine has the address, without a namespace.
pub fn is_on_every_machine(address: IpAddr) -> bool {
    address.is_loopback()
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--pid", "--fork", "--kill-child", "--"]);
    command
}

fn possible() -> Result<(), String> {
    let mut attempt = unshare();
    attempt.args(["ip", "link", "set", "lo", "up"]).stdin(Stdio::null()).stdout(Stdio::null());
    match attempt.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}
