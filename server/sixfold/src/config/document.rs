//! Reader of the whole TOML document, table by table. Settings that are not supported yet are read and checked like all
//! others, and rejected only when they ask for something.

use super::access::{Allowed, allowed};
use super::address::{Family, prefix};
use super::draft::{Draft, Source, ZoneDraft};
use super::fields::{ADDRESS, address, bounded_list, networks, set, set_number};
use super::model::{Format, Level, LogTarget, Steer};
use super::notation::forgotten_brackets;
use super::report::{Fault, Item, Problems, quoted};
use super::table::{Entry, Table};
use super::upstream_tls::Forwarder;
use super::{Name, amount, dnstap, limits, query_source};
use engine::limits::{TRIES, UDP_SIZE};
use engine::local::server_names::SERVER_TEXT;
use engine::message::cookie::{NotASecret, SECRETS, Secret};
use engine::settings::{ClientSubnet, Select, Transport};
use std::path::{Path, PathBuf};
use tls::anchors::AnchorSource;
use toml::de::DeTable;

/// Reads the document.
pub fn read(document: &DeTable<'_>, problems: &Problems) -> Draft {
    let mut draft = Draft::default();
    let mut root = Table::root(document, problems);
    server(root.table("server"), &mut draft, problems);
    upstream(root.table("upstream"), &mut draft, problems);
    super::dns64::read(root.table("dns64"), &mut draft, problems);
    draft.local = super::local::local(root.table("local"));
    (draft.blocked, draft.rpz) =
        super::local::filter(root.table("filter"), &mut draft.config.rpz.bad_records);
    super::cache::read(root.table("cache"), &mut draft, problems);
    edns(root.table("edns"), &mut draft, problems);
    limits(root.table("limits"), &mut draft);
    draft.tls = super::tls::read(root.table("tls"), problems);
    metrics(root.table("metrics"), &mut draft, problems);
    control(root.table("control"), &mut draft);
    log(root.table("log"), &mut draft);
    root.finish();
    draft
}

fn server(mut table: Table<'_>, draft: &mut Draft, problems: &Problems) {
    if let Some(entry) = table.get("listen") {
        entry.refuse_empty("write at least one address, like \"[::]:53\"");
        if let Some(list) = entry.list(ADDRESS, |text| address(text, 53, problems)) {
            draft.listen = list;
        }
    }
    if let Some(entry) = table.get("workers") {
        match entry.as_str() {
            Some("auto") => {}
            Some(other) => {
                let (low, high) = (limits::WORKERS.start(), limits::WORKERS.end());
                let what = format!("{} is not a number of workers", quoted(other));
                let help = format!(
                    "write \"auto\" for one per core, or a number from {low} to {high} without quotation marks"
                );
                problems.add(&entry.place, Fault::new(what, help));
            }
            None => {
                if let Some(Ok(workers)) =
                    entry.integer(limits::WORKERS).map(|item| u16::try_from(item.value))
                {
                    draft.config.server.workers = Some(workers);
                }
            }
        }
    }
    if let Some(allow) = allow(&mut table, problems) {
        draft.config.server.allow.entries = allow;
        draft.allow_is_default = false;
    }
    set(
        &mut draft.config.server.steer,
        table.choice("steer", &[("name", Steer::Name), ("flow", Steer::Flow)]),
    );
    super::datapath::read(&mut table, &mut draft.config.server, problems);
    if let Some(user) = table.parse("user", "the name of a user", user) {
        draft.config.server.user = Some(user.value);
    }
    set(&mut draft.config.server.sandbox, table.choice("sandbox", &[("on", true), ("off", false)]));
    if let Some(proxies) = networks(&mut table, "proxy-from", Family::Both, problems) {
        draft.config.server.proxy_from = proxies;
    }
    set(&mut draft.config.server.freebind, table.boolean("freebind"));
    set(&mut draft.config.server.identity, table.parse("identity", "a text", server_text));
    set(&mut draft.config.server.version, table.parse("version", "a text", server_text));
    table.finish();
}

/// Parses a text about the server, which must fit into a character string (RFC 1035 section 3.3).
fn server_text(text: &str) -> Result<String, Fault> {
    if text.len() > SERVER_TEXT || text.contains(|c: char| c.is_control()) {
        let what = format!("{} is longer than {SERVER_TEXT} octets, or has control characters", quoted(text));
        return Err(Fault::new(what, "write a short text, like \"dns1.example\", or \"\" to tell nothing"));
    }
    Ok(text.to_owned())
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

/// Reads the networks of clients: the word `"local"`, or a list that may have it.
fn allow(table: &mut Table<'_>, problems: &Problems) -> Option<Vec<Allowed>> {
    if table.get("allow")?.as_str() == Some("local") {
        return Some(vec![Allowed::Local]);
    }
    bounded_list(table, "allow", "a network", problems, allowed)
}

/// Reads forwarders: the word `"system"`, or a list of addresses.
fn forwarders(entry: Entry<'_>, problems: &Problems) -> Option<Source> {
    match entry.as_str() {
        Some("system") => return Some(Source::System(entry.place)),
        Some(other) => {
            let what = format!("{} is not a list of forwarders", quoted(other));
            let help = format!(
                "write [{other:?}] if that is an address, or \"system\" for those of /etc/resolv.conf"
            );
            problems.add(&entry.place, Fault::new(what, help));
            return None;
        }
        None => {}
    }
    entry.refuse_empty("write at least one address, or \"system\" for those of /etc/resolv.conf");
    let forwarder = |text: &str| {
        problems.warn(forgotten_brackets(text));
        Forwarder::parse(text)
    };
    entry.list(ADDRESS, forwarder).map(Source::Listed)
}

fn upstream(mut table: Table<'_>, draft: &mut Draft, problems: &Problems) {
    if let Some(source) = table.get("forwarders").and_then(|entry| forwarders(entry, problems)) {
        draft.forwarders = source;
    }
    let upstream = &mut draft.config.upstream;
    let selects = [("ordered", Select::Ordered), ("random", Select::Random), ("fastest", Select::Fastest)];
    set(&mut upstream.select, table.choice("select", &selects));
    let timeout =
        table.parse("timeout", "a duration like \"1s\"", |text| amount::duration(text, limits::TIMEOUT));
    set(&mut upstream.timeout, timeout);
    set_number(&mut upstream.tries, table.integer("tries", 1..=TRIES as u64));
    let transports = [
        ("udp", (Transport::Udp, false)),
        ("tcp", (Transport::Tcp, false)),
        ("tls", (Transport::Tls, false)),
        ("auto", (Transport::Udp, true)),
    ];
    if let Some((transport, auto)) = table.choice("transport", &transports).map(|item| item.value) {
        (upstream.transport, upstream.auto_transport) = (transport, auto);
    }
    draft.tls_ca = table.parse("tls-ca", "\"system\" or the path of a file", anchors);
    set(&mut upstream.tcp_fast_open, table.boolean("tcp-fast-open"));
    set(&mut upstream.mix_case, table.boolean("mix-case"));
    let prefix = table.parse("via-nat64", "a prefix like \"64:ff9b::/96\"", |text| match text {
        "" => Ok(None),
        _ => prefix(text).map(Some),
    });
    set(&mut upstream.via_nat64, prefix);
    query_source::read(&mut table, upstream, Path::new(query_source::RESERVED_PORTS), problems);
    let zones = table.tables("zone");
    if let Some(zone) = zones.get(limits::ZONES) {
        let what = format!("more than {} zones", limits::ZONES);
        let help = "name a common parent of zones that have the same forwarders";
        problems.add(zone.place(), Fault::new(what, help));
    }
    draft.zones = zones.into_iter().filter_map(|zone| read_zone(zone, problems)).collect();
    table.finish();
}

/// Parses the source of trust anchors.
fn anchors(text: &str) -> Result<AnchorSource, Fault> {
    match text {
        "" => Err(Fault::new("`upstream.tls-ca` is empty", "write \"system\", or the path of a PEM file")),
        "system" => Ok(AnchorSource::System),
        path => Ok(AnchorSource::File(path.into())),
    }
}

fn read_zone(mut table: Table<'_>, problems: &Problems) -> Option<ZoneDraft> {
    let place = table.place().clone();
    let missing = |key: &str, example: &str| {
        let what = format!("this [[upstream.zone]] has no `{key}`");
        problems.add(&place, Fault::new(what, format!("add a line like {key} = {example}")));
    };
    let zone = match table.get("zone") {
        Some(entry) => entry.parse("a domain name", Name::covering),
        None => {
            missing("zone", "\"corp.example\"");
            None
        }
    };
    let forwarders = match table.get("forwarders") {
        Some(entry) => forwarders(entry, problems),
        None => {
            missing("forwarders", "[\"10.0.0.53\"]");
            None
        }
    };
    table.finish();
    Some(ZoneDraft { zone: zone?, forwarders: forwarders? })
}

fn edns(mut table: Table<'_>, draft: &mut Draft, problems: &Problems) {
    set_number(&mut draft.config.udp_size, table.integer("udp-size", 512..=UDP_SIZE as u64));
    set(&mut draft.config.cookies.enabled, table.boolean("cookies"));
    if let Some(entry) = table.get("cookie-secret") {
        draft.config.cookies.secrets = secrets(entry, problems);
    }
    let subnet = [("off", ClientSubnet::Off), ("forward", ClientSubnet::Forward)];
    set(&mut draft.config.client_subnet, table.choice("client-subnet", &subnet));
    table.finish();
}

/// Reads one cookie secret, or a list of them.
fn secrets(entry: Entry<'_>, problems: &Problems) -> Vec<Secret> {
    const KIND: &str = "32 hex digits";
    let secret = |text: &str| {
        // The message does not quote the secret: it may end up in a log.
        let help = "write 32 hex digits; `openssl rand -hex 16` makes them";
        text.parse().map_err(|NotASecret| Fault::new("`edns.cookie-secret` is not 32 hex digits", help))
    };
    if entry.as_str().is_some() {
        return entry.parse(KIND, secret).map(|item| item.value).into_iter().collect();
    }
    entry.refuse_empty("write 32 hex digits, or delete the key for a random secret");
    let list = entry.list(KIND, secret).unwrap_or_default();
    if let Some(item) = list.get(SECRETS) {
        let what = format!("`edns.cookie-secret` has more than {SECRETS} secrets");
        let help = "keep the current secret, which makes the cookies, the previous one and the next one";
        problems.add(&item.place, Fault::new(what, help));
    }
    list.into_iter().map(|item| item.value).collect()
}

fn limits(mut table: Table<'_>, draft: &mut Draft) {
    let values = &mut draft.config.limits;
    set_number(&mut values.client_prefix, table.integer("client-prefix", limits::CLIENT_PREFIX));
    set_number(&mut values.queries_per_client, table.integer("queries-per-client", limits::RATE));
    set_number(&mut values.responses_per_client, table.integer("responses-per-client", limits::RATE));
    set_number(&mut values.pending, table.integer("pending", limits::PENDING));
    set_number(&mut values.pending_per_client, table.integer("pending-per-client", limits::PENDING));
    set_number(&mut values.tcp_connections, table.integer("tcp-connections", limits::CONNECTIONS));
    set_number(&mut values.tcp_per_client, table.integer("tcp-per-client", limits::CONNECTIONS));
    let idle =
        table.parse("tcp-idle", "a duration like \"10s\"", |text| amount::duration(text, limits::TCP_IDLE));
    set(&mut values.tcp_idle, idle);
    table.finish();
}

fn metrics(mut table: Table<'_>, draft: &mut Draft, problems: &Problems) {
    let listen = table.parse("listen", ADDRESS, |text| match text {
        "" => Ok(None),
        _ => address(text, 9464, problems).map(Some),
    });
    if let Some(Item { value, place }) = listen {
        draft.metrics_listen = value.map(|value| Item { value, place });
    }
    table.finish();
}

fn control(mut table: Table<'_>, draft: &mut Draft) {
    let socket = table.parse("socket", "a path", |text| {
        let refuse = |why: String| {
            let help = "write a path like \"/run/sixfold/control.sock\", or \"\" for no control socket";
            Fault::new(format!("{} is not a path for a socket: {why}", quoted(text)), help)
        };
        match text.len() {
            0 => Ok(None),
            _ if text.contains('\0') => Err(refuse("it contains a zero octet".to_owned())),
            1..=limits::SOCKET_PATH => Ok(Some(PathBuf::from(text))),
            length => Err(refuse(format!("{length} octets are more than {}", limits::SOCKET_PATH))),
        }
    });
    set(&mut draft.config.control_socket, socket);
    table.finish();
}

fn log(mut table: Table<'_>, draft: &mut Draft) {
    let levels = [
        ("error", Level::Error),
        ("warn", Level::Warn),
        ("info", Level::Info),
        ("debug", Level::Debug),
        ("trace", Level::Trace),
    ];
    set(&mut draft.config.log.level, table.choice("level", &levels));
    set(
        &mut draft.config.log.format,
        table.choice("format", &[("text", Format::Text), ("json", Format::Json)]),
    );
    let targets =
        [("stderr", LogTarget::Stderr), ("journald", LogTarget::Journald), ("syslog", LogTarget::Syslog)];
    set(&mut draft.config.log.to, table.choice("to", &targets));
    set(&mut draft.config.log.dnstap, table.parse("dnstap", "the address of a reader", dnstap::destination));
    table.finish();
}
