//! The effective configuration as a TOML file. It is complete, with all defaults: `sixfold check` shows the values in force,
//! and the file keeps them for a later version with other defaults.

use super::port_range::PortRange;
use super::{
    BadRecords, Config, Datapath, Format, Forwarders, Level, LogTarget, Network, Steer, Upstream, amount,
};
use engine::settings::{ClientSubnet, Dnssec, Lookup, OnFailure, Reverse, Select, Transport};
use std::fmt::{self, Display, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tls::anchors::AnchorSource;

impl Config {
    /// The configuration as TOML, without the comments of the file. Reading it gives an equal `Config`; with `"system"`
    /// only on a system with the same resolvers.
    pub fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_server(f)?;
        self.write_upstream(f)?;
        self.write_dns64(f)?;
        let records: Vec<&str> = self.local.records.iter().map(|record| &record.text[..]).collect();
        let hosts_file = self.local.hosts_file.as_deref().unwrap_or(Path::new(""));
        writeln!(f, "[local]\nrecords = {}\nhosts-file = {}", list(&records), text(hosts_file.display()))?;
        writeln!(f, "empty-zones = {}\n", self.local.empty_zones)?;
        let rpz: Vec<_> = self.rpz.files.iter().map(|file| file.display()).collect();
        writeln!(f, "[filter]\nblock = {}\nrpz = {}", list(&self.blocked), list(&rpz))?;
        let bad_records = match self.rpz.bad_records {
            BadRecords::Skip => "skip",
            BadRecords::Refuse => "refuse",
        };
        writeln!(f, "rpz-bad-records = \"{bad_records}\"\n")?;
        self.write_cache(f)?;
        let subnet = match self.client_subnet {
            ClientSubnet::Off => "off",
            ClientSubnet::Forward => "forward",
        };
        writeln!(f, "[edns]\nudp-size = {}\ncookies = {}", self.udp_size, self.cookies.enabled)?;
        // The text may end up in logs and terminals, so it does not show secrets.
        match self.cookies.secrets.len() {
            0 => {}
            1 => writeln!(f, "# cookie-secret = \"...\" is set")?,
            secrets => writeln!(f, "# cookie-secret = [...] is set to {secrets} secrets")?,
        }
        writeln!(f, "client-subnet = {}\n", text(subnet))?;
        let limits = &self.limits;
        writeln!(f, "[limits]\nclient-prefix = {}", limits.client_prefix)?;
        writeln!(f, "queries-per-client = {}", limits.queries_per_client)?;
        writeln!(f, "responses-per-client = {}", limits.responses_per_client)?;
        writeln!(f, "pending = {}\npending-per-client = {}", limits.pending, limits.pending_per_client)?;
        writeln!(
            f,
            "tcp-connections = {}\ntcp-per-client = {}",
            limits.tcp_connections, limits.tcp_per_client
        )?;
        writeln!(f, "tcp-idle = {}\n", text(amount::show_duration(limits.tcp_idle)))?;
        self.write_tls(f)?;
        let metrics = self.metrics_listen.map(|address| address.to_string()).unwrap_or_default();
        writeln!(f, "[metrics]\nlisten = {}\n", text(metrics))?;
        let socket = self.control_socket.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        writeln!(f, "[control]\nsocket = {}\n", text(socket))?;
        let (level, format) = (level_word(self.log.level), format_word(self.log.format));
        let target = target_word(self.log.to);
        writeln!(f, "[log]\nlevel = {}\nformat = {}\nto = {}", text(level), text(format), text(target))?;
        let dnstap = self.log.dnstap.as_ref().map(ToString::to_string).unwrap_or_default();
        writeln!(f, "dnstap = {}", text(dnstap))
    }
}

impl Config {
    fn write_server(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = &self.server;
        writeln!(f, "[server]\nlisten = {}", list(&server.listen))?;
        match server.workers {
            Some(workers) => writeln!(f, "workers = {workers}")?,
            None => writeln!(f, "workers = \"auto\"")?,
        }
        write!(f, "allow = {}", list(&server.allow.entries))?;
        match server.allow.has_local() {
            true => writeln!(f, " # \"local\" now: {}", join(&server.allow.local()))?,
            false => writeln!(f)?,
        }
        let steer = match server.steer {
            Steer::Name => "name",
            Steer::Flow => "flow",
        };
        let datapath = match server.datapath {
            Datapath::Sockets => "sockets",
            Datapath::Xdp => "xdp",
        };
        writeln!(f, "steer = {}\ndatapath = {}", text(steer), text(datapath))?;
        writeln!(f, "interfaces = {}", list(&server.interfaces))?;
        match &server.user {
            Some(user) => writeln!(f, "user = {}", text(user))?,
            None => writeln!(f, "# user = \"sixfold\", if there is such a user")?,
        }
        writeln!(f, "sandbox = {}", text(if server.sandbox { "on" } else { "off" }))?;
        writeln!(f, "proxy-from = {}", list(&server.proxy_from))?;
        writeln!(f, "freebind = {}", server.freebind)?;
        writeln!(f, "identity = {}\nversion = {}\n", text(&server.identity), text(&server.version))
    }

    fn write_cache(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = &self.cache;
        let duration = |duration| text(amount::show_duration(duration));
        writeln!(f, "[cache]\nsize = {}", text(amount::show_size(cache.size)))?;
        writeln!(f, "min-ttl = {}\nmax-ttl = {}", duration(cache.min_ttl), duration(cache.max_ttl))?;
        writeln!(f, "max-negative-ttl = {}", duration(cache.max_negative_ttl))?;
        writeln!(f, "stale = {}\nprefetch = {}\n", duration(cache.stale), cache.prefetch)
    }

    fn write_tls(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = &self.tls;
        let file = |path: &Option<PathBuf>| text(path.as_deref().unwrap_or(Path::new("")).display());
        writeln!(f, "[tls]\ncertificate = {}\nkey = {}", file(&tls.certificate), file(&tls.key))?;
        writeln!(f, "listen-dot = {}\nlisten-doh = {}", list(&tls.listen_dot), list(&tls.listen_doh))?;
        writeln!(f, "listen-doq = {}\ndoh-path = {}", list(&tls.listen_doq), text(&tls.doh_path))?;
        writeln!(f, "ticket-secret-file = {}", file(&tls.ticket_secret_file))?;
        let name = tls.ddr_name.as_ref().map(ToString::to_string).unwrap_or_default();
        writeln!(f, "ddr-name = {}\n", text(name))
    }

    fn write_upstream(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upstream = &self.upstream;
        writeln!(f, "[upstream]")?;
        write_forwarders(f, upstream, &upstream.forwarders)?;
        let select = match upstream.select {
            Select::Ordered => "ordered",
            Select::Random => "random",
            Select::Fastest => "fastest",
        };
        let transport = match upstream.transport {
            _ if upstream.auto_transport => "auto",
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
        };
        writeln!(f, "select = {}", text(select))?;
        writeln!(f, "timeout = {}", text(amount::show_duration(upstream.timeout)))?;
        writeln!(f, "tries = {}\ntransport = {}", upstream.tries, text(transport))?;
        let anchors = match &upstream.tls_ca {
            AnchorSource::System => "system".into(),
            AnchorSource::File(path) => path.to_string_lossy(),
        };
        writeln!(f, "tls-ca = {}", text(anchors))?;
        writeln!(f, "tcp-fast-open = {}\nmix-case = {}", upstream.tcp_fast_open, upstream.mix_case)?;
        let prefix = upstream.via_nat64.map(|prefix| prefix.to_string()).unwrap_or_default();
        writeln!(f, "via-nat64 = {}\nsource = {}", text(prefix), list(&upstream.sources))?;
        let port = |range: &PortRange| match range.first == range.last {
            true => range.to_string(),
            false => text(range),
        };
        let avoided: Vec<String> = upstream.avoid_ports.iter().map(port).collect();
        writeln!(f, "avoid-ports = [{}]\n", avoided.join(", "))?;
        for zone in &upstream.zones {
            writeln!(f, "[[upstream.zone]]\nzone = {}", text(&zone.zone))?;
            write_forwarders(f, upstream, &zone.forwarders)?;
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_dns64(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dns64 = &self.dns64;
        writeln!(f, "[dns64]\nprefixes = {}", list(&dns64.prefixes))?;
        let client = |&(network, is_excluded): &(Network, bool)| match is_excluded {
            true => format!("!{network}"),
            false => network.to_string(),
        };
        let clients: Vec<String> = dns64.clients.networks.iter().map(client).collect();
        writeln!(f, "suffix = {}\nclients = {}", text(dns64.suffix), list(&clients))?;
        writeln!(f, "exclude-aaaa = {}", list(&dns64.exclude_aaaa))?;
        writeln!(f, "non-global = {}", text(if dns64.embed_non_global { "embed" } else { "omit" }))?;
        writeln!(f, "never-embed = {}", list(&dns64.never_embed))?;
        let lookup = match dns64.lookup {
            Lookup::Sequential => "sequential".to_owned(),
            Lookup::Parallel => "parallel".to_owned(),
            Lookup::Stagger(span) => {
                format!("stagger {}", amount::show_duration(Duration::from_nanos(span.0)))
            }
        };
        let dnssec = match dns64.dnssec {
            Dnssec::Trust => "trust",
            Dnssec::Off => "off",
        };
        writeln!(f, "lookup = {}\ndnssec = {}", text(lookup), text(dnssec))?;
        writeln!(f, "break-dnssec = {}\nrecursive-only = {}", dns64.break_dnssec, dns64.recursive_only)?;
        let ptr = match dns64.ptr {
            Reverse::Cname => "cname",
            Reverse::Local => "local",
            Reverse::Off => "off",
        };
        writeln!(f, "ptr = {}\nptr-server = {}", text(ptr), text(&dns64.ptr_server))?;
        writeln!(f, "ptr-contact = {}\nipv4only-arpa = {}", text(&dns64.ptr_contact), dns64.ipv4only_arpa)?;
        writeln!(f, "max-records = {}\n", dns64.max_records)?;
        self.write_on_failure(f)?;
        self.write_rules(f)
    }

    fn write_on_failure(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = &self.dns64.on_failure;
        writeln!(f, "[dns64.on-failure]")?;
        for (key, action) in [
            ("servfail", policy.servfail),
            ("refused", policy.refused),
            ("formerr", policy.formerr),
            ("notimp", policy.notimp),
            ("timeout", policy.timeout),
            ("nxdomain", policy.nxdomain),
        ] {
            let action = match action {
                OnFailure::Synthesize => "synthesize",
                OnFailure::Pass => "pass",
            };
            writeln!(f, "{key} = {}", text(action))?;
        }
        writeln!(f)
    }

    fn write_rules(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.dns64.rules {
            writeln!(f, "[[dns64.rule]]")?;
            for (key, networks) in [("clients", &rule.clients), ("ipv4", &rule.ipv4)] {
                if !networks.is_empty() {
                    writeln!(f, "{key} = {}", list(networks))?;
                }
            }
            if !rule.names.is_empty() {
                writeln!(f, "names = {}", list(&rule.names))?;
            }
            writeln!(f, "prefixes = {}", list(&rule.prefixes))?;
            writeln!(f, "real-aaaa = {}\n", text(if rule.ignores_real { "ignore" } else { "prefer" }))?;
        }
        Ok(())
    }
}

fn write_forwarders(f: &mut fmt::Formatter<'_>, upstream: &Upstream, forwarders: &Forwarders) -> fmt::Result {
    let shown: Vec<_> = forwarders.addresses.iter().map(|&address| upstream.shown(address)).collect();
    if forwarders.system {
        writeln!(f, "forwarders = \"system\" # {}", list(&shown))
    } else {
        writeln!(f, "forwarders = {}", list(&shown))
    }
}

pub(super) fn level_word(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

fn format_word(format: Format) -> &'static str {
    match format {
        Format::Text => "text",
        Format::Json => "json",
    }
}

fn target_word(target: LogTarget) -> &'static str {
    match target {
        LogTarget::Stderr => "stderr",
        LogTarget::Journald => "journald",
        LogTarget::Syslog => "syslog",
    }
}

/// Items with commas between.
fn join<T: Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A TOML list of strings.
fn list<T: Display>(items: &[T]) -> String {
    format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// A TOML basic string: quotation marks, backslashes and control characters are escaped.
fn text(value: impl Display) -> String {
    let mut quoted = String::from("\"");
    for character in value.to_string().chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            // Writing to a string cannot fail.
            other if other.is_control() => _ = write!(quoted, "\\u{:04X}", u32::from(other)),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
