//! Two network namespaces for a test.

use kit::namespace::Named;

/// Two namespaces, removed at the end.
pub struct Ends {
    pub left: Named,
    pub right: Named,
}

impl Ends {
    /// Makes the namespaces; none where this machine cannot.
    pub fn make(name: &str) -> Option<Ends> {
        if !std::path::Path::new("/dev/net/tun").exists() {
            kit::skip("the kernel has no TUN interfaces");
            return None;
        }
        let end = |side: &str| Named::or_skip(&format!("{name}-{side}"));
        Some(Ends { left: end("l")?, right: end("r")? })
    }

    /// Names of the interfaces in both namespaces, without loopback.
    pub fn interfaces(&self) -> String {
        let all = [&self.left, &self.right].map(|end| end.ip(&["-brief", "link"]).expect("ip")).concat();
        all.lines().filter(|line| !line.starts_with("lo ")).collect()
    }
}
