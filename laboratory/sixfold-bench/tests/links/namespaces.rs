//! Two network namespaces for a test.

use sixfold_bench::link::namespace::Namespace;
use std::process::Command;

/// Two namespaces, removed at the end.
pub struct Ends {
    pub left: String,
    pub right: String,
}

impl Ends {
    /// Makes the namespaces; none where this machine cannot.
    pub fn make(name: &str) -> Option<Ends> {
        let end = |side: &str| format!("sixfold-{name}-{side}-{}", std::process::id());
        let ends = Ends { left: end("l"), right: end("r") };
        for namespace in [&ends.left, &ends.right] {
            match Command::new("ip").args(["netns", "add", namespace]).output() {
                Err(_) => {
                    kit::missing("ip", "apt-get install iproute2");
                    return None;
                }
                Ok(output) if !output.status.success() => {
                    kit::skip("network namespaces need root");
                    return None;
                }
                Ok(_) => {}
            }
        }
        if !std::path::Path::new("/dev/net/tun").exists() {
            kit::skip("the kernel has no TUN interfaces");
            return None;
        }
        Some(ends)
    }

    /// Runs `work` in the left namespace.
    pub fn left<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(&self.left, work)
    }

    /// Runs `work` in the right namespace.
    pub fn right<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(&self.right, work)
    }

    /// Names of the interfaces in both namespaces, without loopback.
    pub fn interfaces(&self) -> String {
        let show = |namespace: &str| {
            let output = Command::new("ip").args(["-n", namespace, "-brief", "link"]).output().expect("ip");
            let text = String::from_utf8_lossy(&output.stdout);
            text.lines().filter(|line| !line.starts_with("lo ")).collect::<String>()
        };
        show(&self.left) + &show(&self.right)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        for namespace in [&self.left, &self.right] {
            let _ = Command::new("ip").args(["netns", "delete", namespace]).output();
        }
    }
}

/// Runs `work` in a namespace; sockets that it opens stay there.
pub fn within<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    namespace.parse::<Namespace>().and_then(|namespace| namespace.run(|| Ok(work()))).expect("a namespace")
}
