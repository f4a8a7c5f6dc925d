//! The limit of open files, shared between workers and client connections: many connections must not take the
//! descriptors that the workers need for their upstream sockets.

use crate::config::Config;
use engine::limits::LINKS;

/// Number of files that may be open, and number that is reserved for everything but client connections.
#[derive(Clone, Copy, Debug)]
pub struct FileLimit {
    limit: usize,
    reserved: usize,
}

impl FileLimit {
    /// Each worker needs its links to upstreams, its listeners, further handles of them for a successor (`upgrade/`), and the
    /// descriptor that wakes it. `trials` are sockets for trials of real AAAA records. Some more files are
    /// for the rest: log, metrics, control socket, and the configuration during a reload.
    pub fn new(limit: u64, workers: usize, listeners: usize, trials: usize) -> FileLimit {
        let reserved = workers * (LINKS + 3 * listeners) + trials + 64;
        FileLimit { limit: usize::try_from(limit).unwrap_or(usize::MAX), reserved }
    }

    /// The limit of open files.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Number of client connections, of `wanted`, that may be open without taking the files of the workers. If there
    /// are too few files for both, the connections get a quarter.
    pub fn grant(&self, wanted: usize) -> usize {
        wanted.min(self.spare().max(self.limit / 4).max(16))
    }

    /// A warning for the operator if the limit is too low for the configuration.
    pub fn warning(&self, config: &Config) -> Option<String> {
        let wanted = config.limits.tcp_connections;
        (wanted > self.spare()).then(|| {
            format!(
                "the limit of {} open files is too low for {wanted} client connections and {} files of the workers: \
                 the server admits only {} connections; raise the limit (`LimitNOFILE=` of systemd, `ulimit -n`) or \
                 lower `limits.tcp-connections`",
                self.limit,
                self.reserved,
                self.grant(wanted)
            )
        })
    }

    fn spare(&self) -> usize {
        self.limit.saturating_sub(self.reserved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_the_files_that_the_workers_need() {
        let files = FileLimit::new(20_000, 4, 2, 0);
        assert_eq!(files.grant(10_000), 10_000);
        assert_eq!(files.grant(50_000), 20_000 - 4 * (LINKS + 6) - 64);
    }

    #[test]
    fn with_too_few_files_connections_get_a_quarter_and_never_nothing() {
        assert_eq!(FileLimit::new(1024, 4, 2, 0).grant(10_000), 256);
        assert_eq!(FileLimit::new(20, 4, 2, 0).grant(10_000), 16);
        assert_eq!(FileLimit::new(1024, 4, 2, 0).grant(10), 10);
    }
}
