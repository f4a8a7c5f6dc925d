//! Values that only one key has: their texts, and the forms of keys that take a word in place of a number or a list.

use super::access::{Allow, Allowed, allowed};
use super::address::{Family, Network, network};
use super::address_syntax::outer_blank;
use super::form::{Form, List, Number, list, text};
use super::forwarder::{Forwarder, Forwarders};
use super::port_range::PortRange;
use super::prefix_entry::{PrefixEntry, general, special};
use super::report::{Fault, Item, quoted};
use super::table::Entry;
use super::{Name, limits, units};
use engine::local::server_names::SERVER_TEXT;
use engine::message::cookie::{NotASecret, SECRETS, Secret};
use engine::settings::Lookup;
use rustls::pki_types::ServerName;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tls::anchors::AnchorSource;

/// Octets of the longest name of an interface (IFNAMSIZ without the zero octet at its end).
const INTERFACE: usize = 15;

/// A number of workers, or `"auto"` for one per core.
pub struct Workers;

impl Form<Option<u16>> for Workers {
    fn shape(&self) -> String {
        "\"auto\" | number".to_owned()
    }

    fn bounds(&self) -> Option<[String; 2]> {
        Form::<u16>::bounds(&Number(limits::WORKERS))
    }

    fn read(&self, entry: Entry<'_>) -> Option<Option<u16>> {
        match entry.as_str() {
            Some("auto") => Some(None),
            Some(other) => {
                let (low, high) = (limits::WORKERS.start(), limits::WORKERS.end());
                let what = format!("{} is not a number of workers", quoted(other));
                let help = format!(
                    "write \"auto\" for one per core, or a number from {low} to {high} without quotation marks"
                );
                entry.refuse(Fault::new(what, help));
                None
            }
            None => Form::<u16>::read(&Number(limits::WORKERS), entry).map(Some),
        }
    }

    fn print(&self, value: &Option<u16>) -> String {
        value.map_or_else(|| text("auto"), |workers| workers.to_string())
    }
}

/// Networks of clients, with the word `"local"` among them or alone.
pub struct AllowedClients;

const ALLOWED: List<Allowed> = List {
    most: limits::MOST_NETWORKS,
    ..List::of("networks", "a network", allowed, |entry| entry.to_string())
};

impl Form<Allow> for AllowedClients {
    fn shape(&self) -> String {
        ALLOWED.shape.to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<Allow> {
        let entries = match entry.as_str() {
            Some("local") => vec![Allowed::Local],
            _ => ALLOWED.read(entry)?,
        };
        Some(Allow { entries, interfaces: Vec::new() })
    }

    fn print(&self, value: &Allow) -> String {
        ALLOWED.print(&value.entries)
    }

    fn line(&self, key: &str, value: &Allow) -> String {
        let now = match value.has_local() {
            true => {
                let networks: Vec<String> = value.local().iter().map(ToString::to_string).collect();
                format!(" # \"local\" now: {}", networks.join(", "))
            }
            false => String::new(),
        };
        format!("{key} = {}{now}\n", self.print(value))
    }
}

/// The user that the server becomes. Without one it is `sixfold`, if there is such a user.
pub struct User;

impl Form<Option<String>> for User {
    fn shape(&self) -> String {
        "name".to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<Option<String>> {
        entry.parse("the name of a user", user).map(|item| Some(item.value))
    }

    fn print(&self, value: &Option<String>) -> String {
        text(value.as_deref().unwrap_or_default())
    }

    fn line(&self, key: &str, value: &Option<String>) -> String {
        match value {
            Some(user) => format!("{key} = {}\n", text(user)),
            None => format!("# {key} = \"sixfold\", if there is such a user\n"),
        }
    }
}

/// Parses the name of a user.
///
/// # Errors
///
/// The text is empty, longer than 32 octets, or has a colon, a blank or another character that passwd(5) cannot hold.
pub fn user(text: &str) -> Result<String, Fault> {
    // Every name that a line of passwd(5) can hold; useradd(8) is stricter.
    if text.is_empty() || text.len() > 32 || text.contains(|c: char| !c.is_ascii_graphic() || c == ':') {
        let help = "write the name of a user, like \"sixfold\"; \"root\" stays root";
        return Err(Fault::new(format!("{} is not the name of a user", quoted(text)), help));
    }
    Ok(text.to_owned())
}

/// Parses a text about the server, which must fit into a character string (RFC 1035 section 3.3).
pub fn server_text(text: &str) -> Result<String, Fault> {
    if text.len() > SERVER_TEXT || text.contains(|c: char| c.is_control()) {
        let what = format!("{} is longer than {SERVER_TEXT} octets, or has control characters", quoted(text));
        return Err(Fault::new(what, "write a short text, like \"dns1.example\", or \"\" to tell nothing"));
    }
    Ok(text.to_owned())
}

/// Parses the name of an interface, as the kernel allows it.
pub fn interface(text: &str) -> Result<String, Fault> {
    let is_odd = |c: char| c.is_ascii_whitespace() || c.is_ascii_control() || c == '/' || c == ':';
    if text.is_empty() || text.len() > INTERFACE || matches!(text, "." | "..") || text.contains(is_odd) {
        let what = format!("{} is not the name of an interface", quoted(text));
        return Err(Fault::new(what, "write a name like \"eth0\"; `ip link` lists the interfaces"));
    }
    Ok(text.to_owned())
}

/// Networks of both families.
pub fn any_network(text: &str) -> Result<Network, Fault> {
    network(text, Family::Both)
}

/// Networks of IPv4.
pub fn ipv4_network(text: &str) -> Result<Network, Fault> {
    network(text, Family::V4)
}

/// Networks of IPv6.
pub fn ipv6_network(text: &str) -> Result<Network, Fault> {
    network(text, Family::V6)
}

/// Addresses of forwarders, or the word `"system"` for those of the system's resolver configuration.
pub struct ForwarderList;

impl Form<Forwarders> for ForwarderList {
    fn shape(&self) -> String {
        "\"system\" | addresses".to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<Forwarders> {
        match entry.as_str() {
            Some("system") => return Some(Forwarders { system: true, list: Vec::new() }),
            Some("root") => {
                let what = "Sixfold forwards, and does not resolve names from the root itself";
                let help = "install sixfold-recursive, which puts Unbound behind Sixfold on this host; or name a recursive resolver";
                entry.refuse(Fault::new(what, help));
                return None;
            }
            Some(other) => {
                let what = format!("{} is not a list of forwarders", quoted(other));
                let help = format!(
                    "write [{other:?}] if that is an address, or \"system\" for those of /etc/resolv.conf"
                );
                entry.refuse(Fault::new(what, help));
                return None;
            }
            None => {}
        }
        entry.refuse_empty("write at least one address, or \"system\" for those of /etc/resolv.conf");
        Some(Forwarders { system: false, list: entry.addresses(Forwarder::parse)? })
    }

    fn print(&self, value: &Forwarders) -> String {
        list(&value.list)
    }

    fn line(&self, key: &str, value: &Forwarders) -> String {
        match value.system {
            true => format!("{key} = \"system\" # {}\n", self.print(value)),
            false => format!("{key} = {}\n", self.print(value)),
        }
    }
}

/// Parses the source of trust anchors.
pub fn anchors(text: &str) -> Result<AnchorSource, Fault> {
    match text {
        "" => Err(Fault::new("`upstream.tls-ca` is empty", "write \"system\", or the path of a PEM file")),
        "system" => Ok(AnchorSource::System),
        path => Ok(AnchorSource::File(path.into())),
    }
}

/// Writes the source of trust anchors.
pub fn shown_anchors(source: &AnchorSource) -> String {
    match source {
        AnchorSource::System => "system".to_owned(),
        AnchorSource::File(path) => path.to_string_lossy().into_owned(),
    }
}

/// Parses an address that questions may leave from.
pub fn source(text: &str) -> Result<IpAddr, Fault> {
    if let Some(fault) = outer_blank(text) {
        return Err(fault);
    }
    let help = "write an address of this machine, like \"192.0.2.7\" or \"2001:db8::7\"";
    let refuse = |why: &str, help: &str| {
        Err(Fault::new(format!("{} cannot be the source of questions: {why}", quoted(text)), help))
    };
    let Ok(address) = text.parse::<IpAddr>() else {
        let why = "it is neither an IPv4 nor an IPv6 address";
        return match text.parse::<SocketAddr>() {
            Ok(with_port) => {
                let help = format!("write \"{}\"; each socket has a random port", with_port.ip());
                refuse("it has a port", &help)
            }
            Err(_) => refuse(why, help),
        };
    };
    let system = "write [] if the system is to choose the address, or addresses of this machine";
    match address {
        _ if address.is_unspecified() => refuse("it means any address", system),
        _ if address.is_multicast() => refuse("it is a multicast address", help),
        IpAddr::V4(v4) if v4.is_broadcast() => refuse("it is the broadcast address", help),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            refuse("it is link-local, so it does not reach servers beyond its link", system)
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => refuse("it is an IPv4 address in the form of IPv6", &format!("write \"{v4}\"")),
            None => Ok(address),
        },
        IpAddr::V4(_) => Ok(address),
    }
}

/// Ports as numbers, and ranges of ports as strings.
pub struct Ports;

impl Form<Vec<PortRange>> for Ports {
    fn shape(&self) -> String {
        "ports".to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<Vec<PortRange>> {
        let kind = "a port like 1234 or a range like \"2000-2999\"";
        let (problems, place) = (entry.problems(), entry.place.clone());
        let entries = entry.elements(kind, "write [1234, \"2000-2999\"] with the ports to avoid")?;
        let range = |entry: Entry<'_>| match entry.as_str() {
            None => entry.integer(1..=u64::from(u16::MAX)).map(|number| PortRange::single(number as u16)),
            Some(_) => entry.parse(kind, PortRange::configured).map(|item| item.value),
        };
        let ranges: Vec<PortRange> = entries.into_iter().filter_map(range).collect();
        if ranges.len() > limits::AVOIDED_PORTS {
            let what = format!("`upstream.avoid-ports` has more than {} entries", limits::AVOIDED_PORTS);
            problems.add(&place, Fault::new(what, "join ports that follow one another into ranges"));
        }
        Some(ranges)
    }

    fn print(&self, value: &Vec<PortRange>) -> String {
        let port = |range: &PortRange| match range.first == range.last {
            true => range.to_string(),
            false => text(range),
        };
        format!("[{}]", value.iter().map(port).collect::<Vec<_>>().join(", "))
    }
}

/// Prefixes of DNS64.
pub const PREFIXES: List<PrefixEntry> = List {
    most: Some((limits::PREFIXES, "prefixes", "name only the prefixes that a NAT64 of this network serves")),
    ..List::of("prefixes", "a prefix or \"discover:upstream\"", general, PrefixEntry::to_string)
};

/// Prefixes of a rule.
pub const RULE_PREFIXES: List<PrefixEntry> =
    List { parse: special, kind: "a prefix or \"discovered\"", ..PREFIXES };

/// A network of clients, and true if it is excluded.
type Client = (Network, bool);

/// Networks of clients, of which some are excluded.
pub const CLIENTS: List<Client> =
    List { most: limits::MOST_NETWORKS, ..List::of("networks", "a network", client, shown_client) };

/// Parses a network of clients, which is excluded if it follows `!`.
fn client(text: &str) -> Result<Client, Fault> {
    match text.strip_prefix('!') {
        Some(excluded) => Ok((network(excluded, Family::Both)?, true)),
        None => Ok((network(text, Family::Both)?, false)),
    }
}

fn shown_client(&(network, is_excluded): &Client) -> String {
    if is_excluded { format!("!{network}") } else { network.to_string() }
}

/// Parses the bits after the embedded address.
pub fn suffix(text: &str) -> Result<Ipv6Addr, Fault> {
    text.parse().map_err(|_| {
        let help =
            "write the bits after the embedded address as an IPv6 address, like \"::1\"; \"::\" for none";
        Fault::new(format!("{} is not an IPv6 address", quoted(text)), help)
    })
}

/// Parses the time of the A query.
pub fn lookup(text: &str) -> Result<Lookup, Fault> {
    match text {
        "sequential" => Ok(Lookup::Sequential),
        "parallel" => Ok(Lookup::Parallel),
        _ => match text.strip_prefix("stagger ") {
            Some(delay) => Ok(Lookup::Stagger(units::duration(delay, limits::STAGGER)?.into())),
            None => {
                let what = format!("{} is not a value of `dns64.lookup`", quoted(text));
                Err(Fault::new(
                    what,
                    "write \"sequential\" or \"parallel\" or \"stagger\" and a duration, like \"stagger 20ms\"",
                ))
            }
        },
    }
}

/// Writes the time of the A query.
pub fn shown_lookup(lookup: &Lookup) -> String {
    match lookup {
        Lookup::Sequential => "sequential".to_owned(),
        Lookup::Parallel => "parallel".to_owned(),
        Lookup::Stagger(span) => format!("stagger {}", units::show_duration(Duration::from_nanos(span.0))),
    }
}

/// Parses the path of a response policy zone.
pub fn policy_zone(text: &str) -> Result<PathBuf, Fault> {
    match text {
        "" => Err(Fault::new("this path is empty", "write the path of a response policy zone")),
        _ => Ok(PathBuf::from(text)),
    }
}

/// Octets of the cache; 0: no cache.
pub struct CacheSize;

impl Form<u64> for CacheSize {
    fn shape(&self) -> String {
        "size".to_owned()
    }

    fn bounds(&self) -> Option<[String; 2]> {
        Some([limits::CACHE.start(), limits::CACHE.end()].map(|&octets| text(units::show_size(octets))))
    }

    fn read(&self, entry: Entry<'_>) -> Option<u64> {
        let problems = entry.problems();
        let Item { value: size, place } = entry.parse("a size like \"64MiB\"", units::size)?;
        if size != 0 && !limits::CACHE.contains(&size) {
            let (low, high) = (limits::CACHE.start() >> 20, limits::CACHE.end() >> 30);
            let size_of = if size < *limits::CACHE.start() { "small" } else { "large" };
            let what = format!("a cache of {size} octets is too {size_of}");
            let help = format!("write a size from \"{low}MiB\" to \"{high}GiB\", or \"0MiB\" for no cache");
            problems.add(&place, Fault::new(what, help));
        }
        Some(size)
    }

    fn print(&self, value: &u64) -> String {
        text(units::show_size(*value))
    }
}

/// One cookie secret, or a list of them.
pub struct Secrets;

const SECRET_LIST: List<Secret> = List {
    most: Some((
        SECRETS,
        "secrets",
        "keep the current secret, which makes the cookies, the previous one and the next one",
    )),
    empty: Some("write 32 hex digits, or delete the key for a random secret"),
    ..List::of("", "32 hex digits", secret, |_| String::new())
};

/// Parses a cookie secret. The message does not quote it: it may end up in a log.
fn secret(text: &str) -> Result<Secret, Fault> {
    let help = "write 32 hex digits; `openssl rand -hex 16` makes them";
    text.parse().map_err(|NotASecret| Fault::new("`edns.cookie-secret` is not 32 hex digits", help))
}

impl Form<Vec<Secret>> for Secrets {
    fn shape(&self) -> String {
        "\"DIGITS\" | [\"DIGITS\", ...]".to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<Vec<Secret>> {
        match entry.as_str() {
            Some(_) => entry.parse(SECRET_LIST.kind, secret).map(|item| vec![item.value]),
            None => SECRET_LIST.read(entry),
        }
    }

    fn print(&self, value: &Vec<Secret>) -> String {
        if value.len() == 1 { "\"...\"".to_owned() } else { "[...]".to_owned() }
    }

    /// The text may end up in logs and terminals, so it does not show secrets.
    fn line(&self, key: &str, value: &Vec<Secret>) -> String {
        match value.len() {
            0 => String::new(),
            1 => format!("# {key} = {} is set\n", self.print(value)),
            secrets => format!("# {key} = {} is set to {secrets} secrets\n", self.print(value)),
        }
    }
}

/// Parses the path of DNS over HTTPS: an absolute path as it stands in a request (RFC 3986 section 3.3), without a query.
pub fn doh_path(text: &str) -> Result<String, Fault> {
    let refuse = |why: &str| {
        let help = "write the path of the requests, like \"/dns-query\"; without query and {?dns}";
        Fault::new(format!("{} is not a path for DNS over HTTPS: {why}", quoted(text)), help)
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "/-._~!$&'()*+,;=:@%".contains(c);
    match text.chars().find(|&c| !is_allowed(c)) {
        _ if !text.starts_with('/') => Err(refuse("it does not begin with /")),
        Some(character) => Err(refuse(&format!("it has the character {character:?}"))),
        None if text.len() > limits::DOH_PATH => {
            Err(refuse(&format!("{} octets are more than {}", text.len(), limits::DOH_PATH)))
        }
        None => Ok(text.to_owned()),
    }
}

/// Parses the name of a designated resolver: a host name, which a certificate can have.
pub fn ddr_name(text: &str) -> Result<Name, Fault> {
    match ServerName::try_from(text) {
        Ok(ServerName::DnsName(_)) => Name::configured(text),
        _ => Err(Fault::new(
            format!("{} is not a host name", quoted(text)),
            "write a name that the certificate has, like \"dns.example\"",
        )),
    }
}

/// An address of the metrics.
pub struct MetricsAddress(pub u16);

impl Form<Option<SocketAddr>> for MetricsAddress {
    fn shape(&self) -> String {
        "address".to_owned()
    }

    fn read(&self, entry: Entry<'_>) -> Option<Option<SocketAddr>> {
        let port = self.0;
        entry.address(|text| match text {
            "" => Ok(None),
            _ => super::endpoint(text, port).map(Some),
        })
    }

    fn print(&self, value: &Option<SocketAddr>) -> String {
        text(value.map(|address| address.to_string()).unwrap_or_default())
    }
}

/// Parses the path of a socket.
pub fn socket(text: &str) -> Result<PathBuf, Fault> {
    let refuse = |why: String| {
        let help = "write a path like \"/run/sixfold/control.sock\", or \"\" for no control socket";
        Fault::new(format!("{} is not a path for a socket: {why}", quoted(text)), help)
    };
    match text.len() {
        _ if text.contains('\0') => Err(refuse("it contains a zero octet".to_owned())),
        0..=limits::SOCKET_PATH => Ok(PathBuf::from(text)),
        length => Err(refuse(format!("{length} octets are more than {}", limits::SOCKET_PATH))),
    }
}
