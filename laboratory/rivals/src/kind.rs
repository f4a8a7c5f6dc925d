//! The kinds of devices under test, and the settings in which the experiments differ.

use crate::names;
use crate::quota::Quota;
use crate::tester::Check;

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

    /// The servers of other projects.
    pub const RIVALS: [Kind; 4] = [Kind::Unbound, Kind::Bind, Kind::Powerdns, Kind::KnotResolver];

    /// Name in the selection, and of the folder of its files.
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

    /// The program and the Debian package of another project's server, and the options with which it tells its version.
    pub fn package(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Kind::Sixfold | Kind::Reflector | Kind::Echo => None,
            Kind::Unbound => Some(("unbound", "unbound", "-V")),
            Kind::Bind => Some(("named", "bind9", "-v")),
            Kind::Powerdns => Some(("pdns_recursor", "pdns-recursor", "--version")),
            Kind::KnotResolver => Some(("kresd", "knot-resolver", "--version")),
        }
    }

    /// Check of its answers.
    pub fn check(self) -> Check {
        match self {
            Kind::Reflector => names::check_reflected,
            _ => names::check_synthesized,
        }
    }
}

/// Limit for a tester that is one client address: the limit per client must be as high as that of all clients, because
/// the other servers have no limit per client.
const ONE_CLIENT: &str = "pending-per-client = 65536";

/// Further settings of a device.
pub struct Setup {
    /// Number of workers. Only Sixfold and the reflector have more than one here.
    pub workers: usize,
    /// Cores that it may use, in the syntax of taskset.
    pub cores: &'static str,
    /// CPU quota on these cores.
    pub quota: Option<Quota>,
    /// Lines of Sixfold's section `[limits]`.
    pub limits: &'static str,
    /// Size of Sixfold's cache in MiB; `None`: Sixfold's default.
    pub cache_mib: Option<u32>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { workers: 1, cores: "0", quota: None, limits: ONE_CLIENT, cache_mib: None }
    }
}
