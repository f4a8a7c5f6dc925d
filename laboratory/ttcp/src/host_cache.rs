//! Cache by host: the last connection count received from a host and the last one sent to it (RFC 1644 section 3.1), and the
//! cookie that the host has given (RFC 7413 section 4.1.3).
//!
//! The paper counts 10 octets for each host (`tao_cc`, `tao_ccsent`, `tao_mssopt`). The cache is bounded; the host that was
//! used least recently gives way, and its next connection makes a three-way handshake again.

use crate::cookie::Cookie;
use crate::serial::Serial;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// The stack's knowledge of a host. A count of `None` is undefined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Connection count of the latest connection that the host opened (`cache.CC`, `tao_cc`).
    pub received: Option<Serial>,
    /// Connection count of our latest connection to the host (`cache.CCsent`, `tao_ccsent`). Undefined: the next SYN carries
    /// CC.NEW.
    pub sent: Option<Serial>,
    /// The host's maximum segment size.
    pub mss: Option<u16>,
    /// Cookie of TCP Fast Open that the host has given.
    pub cookie: Option<Cookie>,
}

/// Bounded cache by host.
#[derive(Debug)]
pub struct HostCache {
    hosts: HashMap<IpAddr, (Host, u64)>,
    by_use: BTreeMap<u64, IpAddr>,
    uses: u64,
    capacity: usize,
}

impl HostCache {
    /// A cache for this many hosts, at least one.
    pub fn new(capacity: usize) -> HostCache {
        HostCache { hosts: HashMap::new(), by_use: BTreeMap::new(), uses: 0, capacity: capacity.max(1) }
    }

    /// The knowledge of a host; empty if there is none.
    pub fn get(&self, host: IpAddr) -> Host {
        self.hosts.get(&host).map(|(known, _)| *known).unwrap_or_default()
    }

    /// Changes the knowledge of a host, which counts as a use.
    pub fn update(&mut self, host: IpAddr, change: impl FnOnce(&mut Host)) {
        if !self.hosts.contains_key(&host)
            && self.hosts.len() == self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.hosts.remove(&oldest);
        }
        self.uses += 1;
        let (known, used) = self.hosts.entry(host).or_default();
        self.by_use.remove(used);
        *used = self.uses;
        self.by_use.insert(self.uses, host);
        change(known);
    }

    /// Forgets all hosts, as a restart of the machine does.
    pub fn clear(&mut self) {
        self.hosts.clear();
        self.by_use.clear();
    }

    /// Number of hosts.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// True if no host is known.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u8) -> IpAddr {
        IpAddr::from([198, 18, 0, n])
    }

    #[test]
    fn the_host_used_least_recently_gives_way() {
        let mut cache = HostCache::new(2);
        cache.update(host(1), |known| known.received = Some(Serial(1)));
        cache.update(host(2), |known| known.received = Some(Serial(2)));
        cache.update(host(1), |known| known.sent = Some(Serial(5)));
        cache.update(host(3), |known| known.received = Some(Serial(3)));
        assert_eq!(cache.get(host(2)), Host::default());
        assert_eq!(
            cache.get(host(1)),
            Host { received: Some(Serial(1)), sent: Some(Serial(5)), ..Host::default() }
        );
        assert_eq!(cache.get(host(3)).received, Some(Serial(3)));
        assert_eq!((cache.len(), cache.by_use.len()), (2, 2));
        cache.clear();
        assert!(cache.is_empty());
    }
}
