//! Options of a server.

use crate::faults::Faults;
use crate::limits;
use crate::service::Content;
use datapath::Steer;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) content: Content,
    pub(crate) faults: Faults,
    pub(crate) threads: usize,
    pub(crate) pins: Vec<usize>,
    pub(crate) steer: Steer,
    pub(crate) offload: bool,
}

impl Settings {
    /// Settings with one thread and without faults.
    pub fn new(content: impl Into<Content>) -> Settings {
        Settings {
            content: content.into(),
            faults: Faults::default(),
            threads: 1,
            pins: Vec::new(),
            steer: Steer::Flow,
            offload: false,
        }
    }

    /// The faults to inject.
    pub fn faults(mut self, faults: Faults) -> Settings {
        self.faults = faults;
        self
    }

    /// Number of UDP threads, 1 to [`limits::THREADS`]; each serves all addresses.
    pub fn threads(mut self, threads: usize) -> Settings {
        self.threads = threads.clamp(1, limits::THREADS);
        self
    }

    /// CPU cores for the UDP threads, in turn. Empty: the kernel chooses.
    pub fn pins(mut self, cores: Vec<usize>) -> Settings {
        self.pins = cores;
        self
    }

    /// The kernel's rule for choosing the thread of a datagram: by its flow (the default), or by its query name,
    /// which spreads the load when all queries come from one port.
    pub fn steer(mut self, steer: Steer) -> Settings {
        self.steer = steer;
        self
    }

    /// True if datagrams of equal length may come and leave together (UDP GRO and GSO). On one machine such traffic costs a
    /// fraction of single datagrams, and no wire carries it. The default is false.
    pub fn offload(mut self, offload: bool) -> Settings {
        self.offload = offload;
        self
    }
}
