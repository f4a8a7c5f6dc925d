//! A network namespace of an experiment, removed at its end.

use crate::link::namespace::Namespace;
use std::process::Command;

/// A network namespace that lives as long as the value. Its loopback interface is up.
pub struct OwnNamespace {
    namespace: Namespace,
}

impl OwnNamespace {
    /// Makes a namespace whose name says the experiment and this process. The error says the remedy.
    pub fn make(experiment: &str) -> Result<OwnNamespace, String> {
        let name = format!("sixfold-{experiment}-{}", std::process::id());
        ip(&["netns", "add", &name])?;
        let own = OwnNamespace { namespace: name.parse()? };
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
        Ok(own)
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Sets a kernel parameter of the namespace, such as `net/ipv4/ip_forward`.
    pub fn set(&self, parameter: &str, value: &str) -> Result<(), String> {
        let path = format!("/proc/sys/{parameter}");
        self.namespace
            .run(|| std::fs::write(&path, value).map_err(|error| format!("{path}: {error}; this needs root")))
    }
}

impl Drop for OwnNamespace {
    fn drop(&mut self) {
        // A namespace that is gone already needs no removal.
        let _ = ip(&["netns", "delete", self.namespace.name()]);
    }
}

/// Runs `ip`.
fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run ip: {error}; install iproute2"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {}: {}; network namespaces need root",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
