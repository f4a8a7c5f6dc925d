//! Statements in `options`, or in the view that is converted.

use super::acl::{self, MatchList, Named};
use super::encryption::Encryption;
use super::identity::AboutItself;
use super::syntax::Statement;
use super::synthesis::{self, Synthesis};
use super::{everywhere, forwarders, known, vocabulary, without, zones};
use crate::draft::Draft;
use crate::empty_zones;
use crate::ledger::{Outcome, Spot};
use crate::model::{Allowed, Endpoint, add};
use crate::network::Network;
use crate::source_ports::add_source;
use crate::value::{self, range};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Statements that need others to be understood; [`finish`](Options::finish) brings them together.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) syntheses: Vec<Synthesis>,
    directory: Option<String>,
    port: Option<u16>,
    listen_v4: Option<Vec<Endpoint>>,
    listen_v6: Option<Vec<Endpoint>>,
    allow_query: Option<MatchList>,
    allow_query_cache: Option<MatchList>,
    allow_recursion: Option<MatchList>,
    match_clients: Option<MatchList>,
    blackhole: Option<MatchList>,
    /// Clients of the views before the one that is converted.
    others_clients: Vec<MatchList>,
    /// Addresses on which the view is reached.
    destinations: Option<(MatchList, Spot)>,
    /// `recursion no`: nobody gets answers but those of BIND's own zones.
    serves_nobody: bool,
    forwards_only: Option<bool>,
    forwarders: Option<Spot>,
    has_empty_zones: Option<bool>,
    answers_stale: bool,
    max_stale: Option<u64>,
    policy_zones: Vec<(String, Spot)>,
    /// The file has `dnssec-validation`.
    names_validation: bool,
    about_itself: AboutItself,
}

impl Options {
    /// Reads a statement and records its outcome.
    pub(super) fn read(
        &mut self,
        statement: &Statement,
        named: &Named<'_>,
        encryption: &Encryption,
        draft: &mut Draft,
    ) {
        if self.about_itself.read(statement, draft) {
            return;
        }
        let outcome = self
            .read_forwarding(statement, encryption, draft)
            .or_else(|| self.read_access(statement, named, encryption, draft))
            .or_else(|| self.read_dns64(statement, named, draft))
            .or_else(|| self.read_cache(statement, draft))
            .or_else(|| read_limits(statement, draft))
            .unwrap_or_else(|| known(vocabulary::OPTIONS, statement.keyword()));
        draft.record(&statement.spot, outcome);
    }

    /// Keeps the clients of a view out that comes before the one that is converted.
    pub(super) fn exclude_view(&mut self, view: &Statement, named: &Named<'_>, draft: &mut Draft) {
        let block = view.block().unwrap_or_default();
        let find = |keyword: &str| block.iter().find(|inner| inner.keyword() == keyword);
        // Its clients get to the later views with queries to other addresses, or without RD.
        if find("match-destinations").is_some() || find("match-recursive-only").is_some() {
            return;
        }
        let clients = find("match-clients").and_then(Statement::block);
        let list = clients.map_or_else(MatchList::any, |clients| MatchList::read_excluded(clients, named));
        if !list.faults.is_empty() {
            let why =
                format!("its clients are kept out of the later view, but for {}", list.faults.join(", "));
            draft.record(&view.spot.header(&format!("view {}", view.word(1))), Outcome::LeftOver(why));
        }
        self.others_clients.push(list);
    }

    fn read_forwarding(
        &mut self,
        statement: &Statement,
        encryption: &Encryption,
        draft: &mut Draft,
    ) -> Option<Outcome> {
        Some(match statement.keyword() {
            "directory" => {
                self.directory = Some(statement.word(1).to_owned());
                Outcome::NoMeaning("names the folder of relative paths")
            }
            "forward" => {
                self.forwards_only = Some(statement.word(1) == "only");
                match statement.word(1) {
                    "only" => Outcome::Carried,
                    _ => Outcome::left_over("Sixfold does not resolve names itself when the forwarders fail"),
                }
            }
            "forwarders" => {
                let (endpoints, faults) = forwarders(statement, ".", encryption, draft);
                if !endpoints.is_empty() {
                    self.forwarders = Some(statement.spot.clone());
                    draft.model.select = Some("fastest");
                }
                draft.model.forward(".", endpoints);
                without(&faults, Outcome::Carried)
            }
            "recursion" => {
                self.serves_nobody = value::yes_no(statement.word(1)) == Some(false);
                match self.serves_nobody {
                    true => Outcome::left_over(
                        "BIND serves its own zones only, and Sixfold only forwards: nobody is in `server.allow`",
                    ),
                    false => Outcome::Carried,
                }
            }
            "querylog" if statement.word(1) == "no" => Outcome::NoMeaning("Sixfold logs no queries"),
            "empty-zones-enable" => {
                self.has_empty_zones = value::yes_no(statement.word(1));
                Outcome::Carried
            }
            "disable-empty-zone" => {
                match value::name(statement.word(1)).filter(|name| empty_zones::is_one(name)) {
                    Some(name) => {
                        draft.model.forwarded_zones.push(name);
                        Outcome::Carried
                    }
                    // Names below one stay in it.
                    None => Outcome::NoMeaning("BIND has no empty zone of this name"),
                }
            }
            "response-policy" => self.read_policy(statement),
            "cookie-secret" => match statement.word(1) {
                secret if secret.len() == 32 && secret.bytes().all(|octet| octet.is_ascii_hexdigit()) => {
                    add(&mut draft.model.cookie_secrets, secret.to_owned());
                    Outcome::Carried
                }
                _ => Outcome::left_over("a cookie secret has 32 hex digits"),
            },
            "query-source" | "query-source-v6" => {
                let words = statement.words().take_while(|word| *word != "port");
                let address = words.filter(|word| !matches!(*word, "address" | "*")).last();
                let outcome =
                    address.map_or(Outcome::Carried, |address| add_source(&mut draft.model.sources, address));
                match statement.after("port") {
                    None | Some("*") => outcome,
                    Some(_) => {
                        value::but(outcome, "Sixfold asks from random ports, which forgers cannot know")
                    }
                }
            }
            "avoid-v4-udp-ports" | "avoid-v6-udp-ports" => {
                let entries = statement.block().unwrap_or_default();
                let outcomes = entries.iter().map(|entry| {
                    let words: Vec<&str> = entry.words().collect();
                    let text = match (entry.keyword(), &words[..]) {
                        ("range", [first, last]) => format!("{first}-{last}"),
                        (port, _) => port.to_owned(),
                    };
                    draft.model.source_ports.avoid(&text, &statement.spot)
                });
                let outcomes: Vec<Outcome> = outcomes.collect();
                let fault = outcomes.into_iter().find(|outcome| !matches!(outcome, Outcome::Carried));
                fault
                    .unwrap_or(Outcome::Differs("Sixfold avoids a port for both address families".to_owned()))
            }
            "answer-cookie" | "send-cookie" => {
                draft.model.cookies = value::yes_no(statement.word(1));
                Outcome::differs("`edns.cookies` is for clients and upstreams at once")
            }
            _ => return None,
        })
    }

    fn read_access(
        &mut self,
        statement: &Statement,
        named: &Named<'_>,
        encryption: &Encryption,
        draft: &mut Draft,
    ) -> Option<Outcome> {
        let key = match statement.keyword() {
            "allow-query" => &mut self.allow_query,
            "allow-query-cache" => &mut self.allow_query_cache,
            "allow-recursion" => &mut self.allow_recursion,
            "match-clients" => &mut self.match_clients,
            "blackhole" => &mut self.blackhole,
            "match-destinations" => {
                let list = MatchList::read(statement.block()?, named);
                let outcome = without(&list.faults, Outcome::Carried);
                self.destinations = Some((list, statement.spot.clone()));
                return Some(outcome);
            }
            "listen-on" | "listen-on-v6" => return Some(self.read_listen(statement, encryption, draft)),
            "port" => {
                self.port = statement.word(1).parse().ok();
                return Some(Outcome::Carried);
            }
            _ => return None,
        };
        let list = match statement.keyword() {
            "blackhole" => MatchList::read_excluded(statement.block()?, named),
            _ => MatchList::read(statement.block()?, named),
        };
        let faults = list.faults.clone();
        let outcome = match statement.keyword() {
            "blackhole" => Outcome::differs("these clients get REFUSED, not silence"),
            _ if list.names_local_networks() => {
                Outcome::differs("`local` also has the private networks and fc00::/7")
            }
            _ => Outcome::Carried,
        };
        *key = Some(list);
        Some(without(&faults, outcome))
    }

    fn read_listen(&mut self, statement: &Statement, encryption: &Encryption, draft: &mut Draft) -> Outcome {
        let is_v6 = statement.keyword() == "listen-on-v6";
        let (mut endpoints, mut faults) = (Vec::new(), Vec::new());
        let (tls, http) = (statement.after("tls").filter(|name| *name != "none"), statement.after("http"));
        let standard = match (tls, http) {
            (_, Some(_)) => Some(value::HTTPS_PORT),
            (Some(_), None) => Some(value::TLS_PORT),
            (None, None) => self.port,
        };
        let port = statement.after("port").and_then(|port| port.parse().ok()).or(standard).unwrap_or(53);
        let [all6, all4] = everywhere(port);
        for element in statement.block().unwrap_or_default() {
            match element.keyword() {
                "any" => endpoints.push(if is_v6 { all6.clone() } else { all4.clone() }),
                "none" => {}
                "localhost" if is_v6 => endpoints.push(Endpoint::new(Ipv6Addr::LOCALHOST, port)),
                "localhost" => endpoints.push(Endpoint::new(Ipv4Addr::LOCALHOST, port)),
                address => match value::endpoint(address, port) {
                    Some(endpoint) if endpoint.address.is_ipv6() == is_v6 => endpoints.push(endpoint),
                    _ => faults.push(format!("`{}` (write the address of the interface)", element.spot.text)),
                },
            }
        }
        // A statement of any transport takes the place of BIND's default, which is plain DNS on all addresses.
        let list = if is_v6 { &mut self.listen_v6 } else { &mut self.listen_v4 };
        let list = list.get_or_insert_default();
        if http.is_some() && tls.is_none() {
            return Outcome::left_over(
                "Sixfold has HTTPS only, with a certificate of its own: `tls.listen-doh`",
            );
        }
        if tls.is_some() {
            let Some(one) = tls.and_then(|name| encryption.tls(name)) else {
                return Outcome::left_over(value::NO_CERTIFICATE);
            };
            let known = &mut draft.model.tls;
            let is_other = |known: &Option<String>, own: &Option<String>| known.is_some() && known != own;
            if one.certificate.is_none() || one.key.is_none() {
                return Outcome::left_over(value::NO_CERTIFICATE);
            }
            if is_other(&known.certificate, &one.certificate) || is_other(&known.key, &one.key) {
                return Outcome::left_over("Sixfold has one certificate for all encrypted listeners");
            }
            known.certificate.clone_from(&one.certificate);
            known.key.clone_from(&one.key);
            match http {
                Some(http) => {
                    known.doh_path = encryption.path(http);
                    known.listen_doh.extend(endpoints);
                }
                None => known.listen_dot.extend(endpoints),
            }
            return without(&faults, Outcome::Carried);
        }
        list.extend(endpoints);
        without(&faults, Outcome::Carried)
    }

    fn read_dns64(&mut self, statement: &Statement, named: &Named<'_>, draft: &mut Draft) -> Option<Outcome> {
        let dns64 = &mut draft.model.dns64;
        match statement.keyword() {
            "dns64" => {}
            "dns64-server" => {
                dns64.ptr_server = value::name(statement.word(1));
                return Some(Outcome::Carried);
            }
            "dns64-contact" => {
                dns64.ptr_contact = value::name(statement.word(1));
                return Some(Outcome::Carried);
            }
            "ipv4only-enable" => {
                dns64.ipv4only_arpa = value::yes_no(statement.word(1));
                return Some(Outcome::Carried);
            }
            _ => return None,
        }
        let prefix = match value::prefix(statement.word(1)) {
            Ok(prefix) => prefix,
            Err(why) => return Some(Outcome::LeftOver(why)),
        };
        if self.syntheses.len() == synthesis::MAX_STATEMENTS {
            return Some(Outcome::left_over("Sixfold takes at most 64 prefixes"));
        }
        let mut one = Synthesis {
            spot: statement.spot.clone(),
            prefix,
            clients: MatchList::any(),
            mapped: MatchList::any(),
            exclude: MatchList::ipv4_mapped(),
            suffix: None,
            break_dnssec: None,
            recursive_only: None,
        };
        let mut faults = Vec::new();
        for inner in statement.block().unwrap_or_default() {
            faults.extend(read_part(&mut one, inner, named));
        }
        self.syntheses.push(one);
        Some(without(&faults, Outcome::Carried))
    }

    fn read_cache(&mut self, statement: &Statement, draft: &mut Draft) -> Option<Outcome> {
        let cache = &mut draft.model.cache;
        let text = statement.word(1);
        let seconds = |key: &mut Option<u64>| match seconds(text) {
            Some(seconds) => value::set(key, seconds, range::TTL),
            None => Outcome::left_over("this is not a TTL"),
        };
        Some(match statement.keyword() {
            "max-cache-size" => match value::octets(text) {
                Some(octets) => value::set_cache(&mut cache.octets, octets),
                None => Outcome::left_over("`cache.size` is a number of octets, and is reserved at start"),
            },
            "max-cache-ttl" => seconds(&mut cache.max_ttl),
            "max-ncache-ttl" => seconds(&mut cache.max_negative_ttl),
            "min-cache-ttl" => seconds(&mut cache.min_ttl),
            "min-ncache-ttl" => {
                Outcome::left_over("`cache.min-ttl` is for positive and negative answers at once")
            }
            "stale-answer-enable" => {
                self.answers_stale = text == "yes";
                Outcome::Carried
            }
            "stale-cache-enable" => Outcome::NoMeaning("`stale-answer-enable` decides about stale answers"),
            "max-stale-ttl" => seconds(&mut self.max_stale),
            "prefetch" => {
                cache.prefetch = Some(text != "0");
                match text {
                    "0" => Outcome::Carried,
                    _ => Outcome::differs("Sixfold refreshes in the last tenth of the TTL"),
                }
            }
            "edns-udp-size" | "max-udp-size" => match text.parse::<u64>() {
                Ok(size) => {
                    let smaller = draft.model.udp_size.map_or(size, |known| known.min(size));
                    value::set(&mut draft.model.udp_size, smaller, range::UDP_SIZE)
                }
                Err(_) => Outcome::left_over("this is not a number"),
            },
            "dnssec-validation" => {
                self.names_validation = true;
                match text {
                    "no" => Outcome::Carried,
                    _ => Outcome::left_over(value::NO_VALIDATION),
                }
            }
            _ => return None,
        })
    }

    fn read_policy(&mut self, statement: &Statement) -> Outcome {
        let mut faults = Vec::new();
        for element in statement.block().unwrap_or_default() {
            let policy = element.after("policy").unwrap_or("given");
            let is_plain = element
                .words()
                .skip(1)
                .all(|word| word == "policy" || word == "given" || word == "log" || word == "yes");
            if element.keyword() == "zone" && policy == "given" && is_plain {
                self.policy_zones.push((element.word(1).to_owned(), element.spot.clone()));
            } else {
                faults.push(format!("`{}`", element.spot.text));
            }
        }
        faults.extend(
            statement.words().filter(|word| value::yes_no(word).is_none()).map(|word| format!("`{word}`")),
        );
        without(&faults, Outcome::Carried)
    }

    /// Sets what several statements decide together.
    pub(super) fn finish(mut self, statements: &[Statement], draft: &mut Draft) {
        let port = self.port.unwrap_or(53);
        let [all6, all4] = everywhere(port);
        for endpoint in self
            .listen_v6
            .take()
            .unwrap_or(vec![all6])
            .into_iter()
            .chain(self.listen_v4.take().unwrap_or(vec![all4]))
        {
            add(&mut draft.model.listen, endpoint);
        }
        self.finish_destinations(port, draft);
        self.finish_access(draft);
        std::mem::take(&mut self.about_itself).finish(draft);
        if !self.names_validation {
            let spot = Spot::line(1, "dnssec-validation, which is `auto` if the file does not say");
            draft.record(&spot, Outcome::left_over(value::NO_VALIDATION));
        }
        if let Some(spot) = self.forwarders.as_ref().filter(|_| self.forwards_only.is_none()) {
            let how =
                "BIND resolves names itself when the forwarders fail (`forward first`), and Sixfold does not";
            draft.record(spot, Outcome::differs(how));
        }
        // With `forward only` BIND makes no empty zones for names that the forwarders get.
        let forwards_all = self.forwards_only == Some(true) && self.forwarders.is_some();
        let has_empty_zones = self.has_empty_zones != Some(false) && !forwards_all;
        draft.model.empty_zones = Some(has_empty_zones);
        for zone in zones::never_forwarded(statements, has_empty_zones) {
            add(&mut draft.model.block, zone);
        }
        let cache = &mut draft.model.cache;
        cache.max_ttl.get_or_insert(7 * 86_400);
        cache.max_negative_ttl.get_or_insert(3 * 3_600);
        cache.stale = Some(if self.answers_stale { self.max_stale.unwrap_or(86_400) } else { 0 });
        for (zone, spot) in &self.policy_zones {
            match zones::file_of(statements, zone, self.directory.as_deref()) {
                Ok(file) => add(&mut draft.model.rpz, file),
                Err(why) => draft.record(spot, Outcome::LeftOver(why)),
            }
        }
        self.finish_dns64(draft);
    }

    /// Listens only where the view is reached.
    fn finish_destinations(&self, port: u16, draft: &mut Draft) {
        let Some((list, spot)) = self.destinations.as_ref().filter(|(list, _)| !list.is_any()) else {
            return;
        };
        let mut hosts: Vec<IpAddr> = list.parts().iter().filter_map(Network::host).collect();
        hosts.retain(|host| list.matches(&Network::from(*host)));
        let tls = &mut draft.model.tls;
        for listen in [&mut draft.model.listen, &mut tls.listen_dot, &mut tls.listen_doh, &mut tls.listen_doq]
        {
            for endpoint in std::mem::take(listen) {
                if endpoint.address.is_unspecified() {
                    let family = hosts.iter().filter(|host| host.is_ipv4() == endpoint.address.is_ipv4());
                    family.for_each(|host| add(listen, Endpoint::new(*host, endpoint.port)));
                } else if list.matches(&Network::from(endpoint.address)) {
                    add(listen, endpoint);
                }
            }
        }
        if draft.model.listen.is_empty() {
            let loopback: [IpAddr; 2] = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
            draft.model.listen = loopback.map(|address| Endpoint::new(address, port)).to_vec();
            let why = "no address to listen on is left: write those of the view into `server.listen`";
            draft.record(spot, Outcome::left_over(why));
        }
    }

    /// A query needs the permission of each list. BIND takes missing ones from each other.
    fn finish_access(&mut self, draft: &mut Draft) {
        let default = || self.allow_query.clone().unwrap_or_else(MatchList::near);
        let recursion =
            self.allow_recursion.clone().or_else(|| self.allow_query_cache.clone()).unwrap_or_else(default);
        let cache =
            self.allow_query_cache.clone().or_else(|| self.allow_recursion.clone()).unwrap_or_else(default);
        let mut lists = vec![recursion, cache];
        lists.extend(self.allow_query.clone());
        lists.extend(self.match_clients.clone());
        lists.extend(self.blackhole.iter().chain(&self.others_clients).map(MatchList::negated));
        if self.serves_nobody {
            draft.model.allow = Some(Vec::new());
            return;
        }
        match acl::allowed(&lists) {
            Some(allowed) => {
                let is_lost =
                    !allowed.contains(&Allowed::Local) && lists.iter().any(MatchList::names_local_networks);
                draft.model.allow = Some(allowed);
                if is_lost {
                    let why = "the networks of the interfaces cannot be cut by another list: name them in `server.allow`";
                    draft.record(&Spot::line(1, "access lists with localnets"), Outcome::left_over(why));
                }
            }
            None => {
                draft.model.allow = Some(vec![Allowed::Local]);
                let why = "the lists are too long: `server.allow` takes 1024 networks";
                draft.record(&Spot::line(1, "access lists"), Outcome::left_over(why));
            }
        }
    }

    fn finish_dns64(&self, draft: &mut Draft) {
        let dns64 = &mut draft.model.dns64;
        let Some(first) = self.syntheses.first() else { return };
        dns64.is_on = true;
        dns64.answers_ptr = true;
        dns64.passed_failures = &["servfail", "refused", "formerr", "notimp", "timeout"];
        dns64.suffix = first.suffix;
        dns64.break_dnssec = first.break_dnssec;
        dns64.recursive_only = first.recursive_only;
        let (compiled, excluded) =
            (synthesis::compile(&self.syntheses), synthesis::excluded(&self.syntheses));
        let is_too_large = compiled.is_none() || excluded.is_none();
        match compiled {
            Some(compiled) => {
                dns64.prefixes = compiled.prefixes;
                dns64.clients = compiled.clients;
                dns64.rules = compiled.rules;
            }
            None => dns64.prefixes = vec![first.prefix],
        }
        dns64.exclude_aaaa = excluded.unwrap_or_default();
        if is_too_large {
            let why = "the lists of the `dns64` statements are too long for rules";
            draft.record(&first.spot, Outcome::left_over(why));
        }
        let settings = |one: &Synthesis| (one.suffix, one.break_dnssec, one.recursive_only);
        for other in self.syntheses.iter().filter(|other| settings(other) != settings(first)) {
            let why = "suffix, break-dnssec and recursive-only hold for all prefixes: those of the first statement count";
            draft.record(&other.spot, Outcome::left_over(why));
        }
    }
}

/// Reads a statement within `dns64`; returns what has no equivalent.
fn read_part(one: &mut Synthesis, statement: &Statement, named: &Named<'_>) -> Vec<String> {
    let list = || MatchList::read(statement.block().unwrap_or_default(), named);
    let key = match statement.keyword() {
        "clients" => &mut one.clients,
        "mapped" => &mut one.mapped,
        "exclude" => &mut one.exclude,
        "suffix" => {
            one.suffix = statement.word(1).parse().ok();
            return Vec::new();
        }
        "break-dnssec" => {
            one.break_dnssec = value::yes_no(statement.word(1));
            return Vec::new();
        }
        "recursive-only" => {
            one.recursive_only = value::yes_no(statement.word(1));
            return Vec::new();
        }
        _ => return vec![format!("`{}`", statement.spot.text)],
    };
    *key = list();
    let mut faults = key.faults.clone();
    if key.needs_local_networks() {
        faults.push("`localnets` (write the networks)".to_owned());
    }
    faults
}

fn read_limits(statement: &Statement, draft: &mut Draft) -> Option<Outcome> {
    let limits = &mut draft.model.limits;
    let text = statement.word(1);
    Some(match statement.keyword() {
        "recursive-clients" => value::but(
            value::set_number(&mut limits.pending, text, range::COUNT),
            "Sixfold counts for each worker",
        ),
        "tcp-clients" => value::set_number(&mut limits.tcp_connections, text, range::COUNT),
        "tcp-idle-timeout" => match text.parse::<u64>() {
            // BIND counts in units of 100 ms.
            Ok(units) => value::set(&mut limits.tcp_idle_ms, units.saturating_mul(100), range::TCP_IDLE_MS),
            Err(_) => Outcome::left_over("this is not a number"),
        },
        "resolver-query-timeout" => {
            Outcome::left_over("see `upstream.timeout` and `upstream.tries`, for one try each")
        }
        "rate-limit" => {
            let mut faults = Vec::new();
            for inner in statement.block().unwrap_or_default() {
                match (inner.keyword(), inner.word(1)) {
                    ("responses-per-second", rate) => {
                        value::set_number(&mut limits.responses_per_client, rate, range::RATE);
                    }
                    // Sixfold slips every second answer, too.
                    ("slip", "2") => {}
                    _ => faults.push(format!("`{}`", inner.spot.text)),
                }
            }
            without(&faults, Outcome::differs("Sixfold counts IPv6 clients by /64, BIND by /56"))
        }
        _ => return None,
    })
}

/// A TTL: seconds, or numbers with units, as in `1d12h`.
fn seconds(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let (mut total, mut digits) = (0_u64, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit = match c.to_ascii_lowercase() {
            'w' => 7 * 86_400,
            'd' => 86_400,
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        total = total.checked_add(std::mem::take(&mut digits).parse::<u64>().ok()?.checked_mul(unit)?)?;
    }
    (digits.is_empty() && !text.is_empty()).then_some(total)
}
