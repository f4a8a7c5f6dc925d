//! Gathers the facts: by questions to the kernel, the routers, DHCP servers and resolvers, and by packets through the gateways. All waits
//! have a limit, and so has the number of everything (`limits.rs`). What looks at one thing runs beside what looks at others.
//!
//! Nothing goes beyond the link but questions to the resolvers, and packets to the target that the plan names.

mod dhcp;
mod encrypted;
mod host;
mod https;
mod path;
mod question;
mod quic;
mod resolver;
mod routers;

/// Readers of messages of others. They take any octets: tests give them some that nobody would send.
pub mod readers {
    pub use super::dhcp::offer_in;
    pub use super::encrypted::{Binding, fault, of_reply};
    pub use super::question::is_reply;
    pub use super::resolver::{addresses4, addresses6, reverse_in, says_dns64, signatures};
    pub use super::routers::{Heard, advertisement};
}

use crate::facts::{Clock, Facts, Host, Looked, Offer, Path, Router, ServerPrefix};
use crate::limits::{PREFIXES, RESOLVERS};
use host::{Kernel, Link};
use path::Way;
use pref64::{Pref64, is_global};
use resolver::{Found, Questions};
use routers::Heard;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::thread::scope;
use std::time::{Duration, SystemTime};

/// A DNS server of the public that answers over TCP, UDP and ICMP: the target where names and addresses outside of the network are allowed.
const PUBLIC: SocketAddrV4 = SocketAddrV4::new(std::net::Ipv4Addr::new(1, 1, 1, 1), 53);

/// What to look at.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The resolvers.
    pub resolvers: Vec<SocketAddr>,
    /// True if the resolvers that routers announce are asked, too.
    pub asks_announced: bool,
    /// The interface. None: that of the default route.
    pub interface: Option<String>,
    /// The IPv4 address behind the gateways, with the port for TCP and UDP.
    pub target: Option<SocketAddrV4>,
    /// A name with A records only, as text and in wire form.
    pub name: Option<(String, Vec<u8>)>,
    /// True if names and addresses outside of the network may be used.
    pub allows_internet: bool,
    /// Wait for each answer.
    pub timeout: Duration,
    /// Time before which no clock is right, in seconds since 1970.
    pub earliest_secs: u64,
    /// The prefixes of a server on this host.
    pub server: Looked<Vec<ServerPrefix>>,
}

/// Looks at everything. It takes some seconds.
///
/// # Errors
///
/// The kernel does not tell its interfaces, or has none with this name.
pub fn gather(plan: &Plan) -> io::Result<Facts> {
    let kernel = Kernel::ask()?;
    let link = kernel
        .link(plan.interface.as_deref())
        .or_else(|| kernel.link(Some("lo")).filter(|_| plan.interface.is_none()));
    let Some(link) = link else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such interface"));
    };
    let host = kernel.host(link);
    let (heard, offers, mut found) = scope(|scope| {
        let routers = scope.spawn(|| of_routers(link));
        let offers = scope.spawn(|| of_servers(link));
        let found = ask_resolvers(&plan.resolvers, plan);
        (joined(routers.join()), joined(offers.join()), found)
    });
    let routers = with_encrypted(heard, plan, link);
    if plan.asks_announced {
        found.extend(ask_resolvers(&announced(&routers, plan, link), plan));
    }
    let (resolvers, signatures): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let clock = Clock {
        now_secs: now.as_secs(),
        earliest_secs: plan.earliest_secs,
        signatures: signatures.into_iter().flatten().collect(),
    };
    let mut facts = Facts {
        clock,
        host,
        routers,
        offers,
        resolvers,
        server: plan.server.clone(),
        paths: Looked::Not(String::new()),
    };
    facts.paths = of_paths(&facts, plan);
    Ok(facts)
}

fn joined<T>(result: std::thread::Result<Looked<T>>) -> Looked<T> {
    result.unwrap_or_else(|_| Looked::Not("a fault of this program; please report it".to_owned()))
}

/// Tries the encrypted resolvers that routers announce.
fn with_encrypted(heard: Looked<Vec<Heard>>, plan: &Plan, link: &Link) -> Looked<Vec<Router>> {
    let heard = match heard {
        Looked::Seen(heard) => heard,
        Looked::Not(why) => return Looked::Not(why),
    };
    let attempt = |one: Heard| {
        let encrypted = encrypted::attempt_all(&one.bindings, None, link.index, plan.timeout);
        Router { encrypted, ..one.router }
    };
    Looked::Seen(heard.into_iter().map(attempt).collect())
}

fn of_routers(link: &Link) -> Looked<Vec<Heard>> {
    match link.is_loopback() {
        true => {
            Looked::Not("there is only the loopback interface; name another one with --interface".to_owned())
        }
        false => routers::look(link.index, &link.name),
    }
}

fn of_servers(link: &Link) -> Looked<Vec<Offer>> {
    match link.ethernet {
        Some(ethernet) => dhcp::look(&link.name, ethernet),
        None => Looked::Not(format!("{} is no Ethernet; name another interface with --interface", link.name)),
    }
}

/// Resolvers that routers announce and nobody else has named.
fn announced(routers: &Looked<Vec<Router>>, plan: &Plan, link: &Link) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for address in routers.seen().into_iter().flatten().flat_map(|router| &router.resolvers) {
        let scope = if address.is_unicast_link_local() { link.index } else { 0 };
        let address = SocketAddr::from(std::net::SocketAddrV6::new(*address, 53, 0, scope));
        if !plan.resolvers.contains(&address) && !found.contains(&address) {
            found.push(address);
        }
    }
    found.truncate(RESOLVERS.saturating_sub(plan.resolvers.len()));
    found
}

fn ask_resolvers(addresses: &[SocketAddr], plan: &Plan) -> Vec<Found> {
    let questions = Questions {
        name: plan.name.as_ref().map(|(name, wire)| (&name[..], &wire[..])),
        allows_internet: plan.allows_internet,
        timeout: plan.timeout,
    };
    scope(|scope| {
        let ask = |address: &SocketAddr| {
            let (address, questions) = (*address, questions.clone());
            scope.spawn(move || resolver::ask(address, &questions))
        };
        let asked: Vec<_> = addresses.iter().take(RESOLVERS).map(ask).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
    })
}

/// The ways through all prefixes that anybody tells.
fn of_paths(facts: &Facts, plan: &Plan) -> Looked<Vec<Path>> {
    let prefixes = prefixes(facts);
    if prefixes.is_empty() {
        return Looked::Not("nothing tells of a prefix".to_owned());
    }
    let Some(target) = plan.target.or(plan.allows_internet.then_some(PUBLIC)) else {
        let why =
            "name an IPv4 address behind it with --target, of a DNS server if you can, or allow --internet";
        return Looked::Not(why.to_owned());
    };
    let may_carry = |prefix: &Pref64| !prefix.is_well_known() || is_global(target.ip().octets());
    let ways: Vec<Way> =
        prefixes.into_iter().filter(may_carry).map(|prefix| way(prefix, target, &facts.host, plan)).collect();
    if ways.is_empty() {
        let why = format!(
            "the well-known prefix must not carry {} (RFC 6052 section 3.1); name a global address",
            target.ip()
        );
        return Looked::Not(why);
    }
    Looked::Seen(scope(|scope| {
        let tried: Vec<_> = ways.iter().map(|way| scope.spawn(|| way.look())).collect();
        tried.into_iter().filter_map(|tried| tried.join().ok()).collect()
    }))
}

fn way(prefix: Pref64, target: SocketAddrV4, host: &Host, plan: &Plan) -> Way {
    Way { prefix, target, mtu: host.mtu, takes_fragments: plan.target.is_some(), timeout: plan.timeout }
}

/// All prefixes, each once.
fn prefixes(facts: &Facts) -> Vec<Pref64> {
    let told = facts.resolvers.iter().flat_map(|resolver| resolver.prefixes.iter().copied());
    let routers = facts.routers.seen().into_iter().flatten().flat_map(|router| &router.prefixes);
    let own = facts.server.seen().into_iter().flatten();
    let mut found = Vec::new();
    for prefix in told.chain(routers.map(|one| one.prefix)).chain(own.map(|one| one.prefix)) {
        if !found.contains(&prefix) && found.len() < PREFIXES {
            found.push(prefix);
        }
    }
    found
}
