//! The kinds of devices under test, and the settings in which the experiments differ.

use crate::perf::quota::Quota;
use crate::perf::tester::Answers;
use servers::TrustAnchor;

/// Devices that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `sixfold serve`.
    Sixfold,
    /// The datapath of Sixfold, driven by a machine that passes messages on without parsing DNS.
    Reflector,
    /// A program with two system calls per query and nothing else.
    Echo,
    /// Unbound.
    Unbound,
    /// BIND.
    Bind,
    /// PowerDNS Recursor.
    Powerdns,
    /// Knot Resolver.
    KnotResolver,
}

impl Kind {
    /// All kinds, in the order of their turns.
    pub const ALL: [Kind; 7] = [
        Kind::Sixfold,
        Kind::Reflector,
        Kind::Echo,
        Kind::Unbound,
        Kind::Bind,
        Kind::Powerdns,
        Kind::KnotResolver,
    ];

    /// True for a server, which has a template.
    pub fn is_server(self) -> bool {
        !matches!(self, Kind::Reflector | Kind::Echo)
    }

    /// The servers of other projects.
    pub const RIVALS: [Kind; 4] = [Kind::Unbound, Kind::Bind, Kind::Powerdns, Kind::KnotResolver];

    /// Name in the selection; that of its template if it is a server.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sixfold => "sixfold",
            Kind::Reflector => "reflector",
            Kind::Echo => "echo",
            Kind::Unbound => "unbound",
            Kind::Bind => "bind",
            Kind::Powerdns => "powerdns",
            Kind::KnotResolver => "knot-resolver",
        }
    }

    /// Its answers.
    pub fn answers(self) -> Answers {
        match self {
            Kind::Reflector => Answers::Reflected,
            _ => Answers::Synthesized,
        }
    }
}

/// Further settings of a device.
pub struct Setup {
    /// Number of workers. Only Sixfold has more than one here.
    pub workers: u16,
    /// Cores that it may use, in the syntax of taskset.
    pub cores: &'static str,
    /// CPU quota on these cores.
    pub quota: Option<Quota>,
    /// True if buffers and limits are the server's own. The tester is one client address, so otherwise Sixfold's limit for one client is
    /// as high as that for all: the other servers have none for one client.
    pub as_shipped: bool,
    /// Further lines of its configuration.
    pub options: Vec<String>,
    /// Trust anchor of a server that validates.
    pub trust_anchor: Option<TrustAnchor>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            workers: 1,
            cores: "0",
            quota: None,
            as_shipped: false,
            options: Vec::new(),
            trust_anchor: None,
        }
    }
}
