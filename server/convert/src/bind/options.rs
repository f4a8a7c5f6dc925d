//! Statements in `options`, or in the view that is converted.

use super::acl::{self, MatchList, Named};
use super::encryption::Encryption;
use super::identity::AboutItself;
use super::syntax::Statement;
use super::synthesis::{self, Synthesis};
use super::validation::Switches;
use super::{everywhere, forwarders, vocabulary, zones};
use crate::draft::Draft;
use crate::empty_zones;
use crate::ledger::{Outcome, Reading, Spot, differs_if, outcome, require, without};
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
    validation: Switches,
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
        let reading = self.read_one(statement, named, encryption, draft);
        draft.record(&statement.spot, outcome(reading, vocabulary::OPTIONS, statement.keyword()));
    }

    fn read_one(
        &mut self,
        statement: &Statement,
        named: &Named<'_>,
        encryption: &Encryption,
        draft: &mut Draft,
    ) -> Reading<bool> {
        Ok(self.read_forwarding(statement, encryption, draft)?
            || self.read_access(statement, named)?
            || self.read_dns64(statement, named, draft)?
            || self.read_cache(statement, draft)?
            || self.validation.read(statement, draft)?
            || read_limits(statement, draft)?)
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
    ) -> Reading<bool> {
        let (word, model) = (statement.word(1), &mut draft.model);
        match statement.keyword() {
            "directory" => {
                self.directory = Some(word.to_owned());
                return Err(Outcome::NoMeaning("names the folder of relative paths"));
            }
            "listen-on" | "listen-on-v6" if statement.block().is_some() => {
                self.read_listen(statement, encryption, draft)?;
            }
            "port" if statement.block().is_none() => self.port = word.parse().ok(),
            "forward" => {
                self.forwards_only = Some(word == "only");
                require(word == "only", "Sixfold does not resolve names itself when the forwarders fail")?;
            }
            "forwarders" => {
                let (endpoints, faults) = forwarders(statement, ".", encryption, draft);
                if !endpoints.is_empty() {
                    self.forwarders = Some(statement.spot.clone());
                    draft.model.select = Some("fastest");
                }
                draft.model.forward(".", endpoints);
                without(&faults)?;
            }
            "recursion" => {
                self.serves_nobody = value::yes_no(word) == Some(false);
                let why =
                    "BIND serves its own zones only, and Sixfold only forwards: nobody is in `server.allow`";
                require(!self.serves_nobody, why)?;
            }
            "querylog" if word == "no" => return Err(Outcome::NoMeaning("Sixfold logs no queries")),
            "empty-zones-enable" => self.has_empty_zones = value::yes_no(word),
            // Names below an empty zone stay in it.
            "disable-empty-zone" => {
                let name = value::name(word).filter(|name| empty_zones::is_one(name));
                model
                    .forwarded_zones
                    .push(name.ok_or(Outcome::NoMeaning("BIND has no empty zone of this name"))?);
            }
            "response-policy" => self.read_policy(statement)?,
            "cookie-secret" => {
                let is_secret = word.len() == 32 && word.bytes().all(|octet| octet.is_ascii_hexdigit());
                require(is_secret, "a cookie secret has 32 hex digits")?;
                add(&mut model.cookie_secrets, word.to_owned());
            }
            "query-source" | "query-source-v6" => {
                let words = statement.words().take_while(|word| *word != "port");
                let address = words.filter(|word| !matches!(*word, "address" | "*")).last();
                let reading = address.map_or(Ok(()), |address| add_source(&mut model.sources, address));
                match statement.after("port") {
                    None | Some("*") => reading?,
                    Some(_) => {
                        value::but(reading, "Sixfold asks from random ports, which forgers cannot know")?
                    }
                }
            }
            "avoid-v4-udp-ports" | "avoid-v6-udp-ports" => {
                let entries = statement.block().unwrap_or_default();
                let readings = entries.iter().map(|entry| {
                    let words: Vec<&str> = entry.words().collect();
                    let text = match (entry.keyword(), &words[..]) {
                        ("range", [first, last]) => format!("{first}-{last}"),
                        (port, _) => port.to_owned(),
                    };
                    model.source_ports.avoid(&text, &statement.spot)
                });
                readings.collect::<Vec<Reading>>().into_iter().collect::<Reading>()?;
                return Err(Outcome::differs("Sixfold avoids a port for both address families"));
            }
            "answer-cookie" | "send-cookie" => {
                model.cookies = value::yes_no(word);
                return Err(Outcome::differs("`edns.cookies` is for clients and upstreams at once"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_access(&mut self, statement: &Statement, named: &Named<'_>) -> Reading<bool> {
        let keyword = statement.keyword();
        let Some(block) = statement.block() else { return Ok(false) };
        let key = match keyword {
            "allow-query" => &mut self.allow_query,
            "allow-query-cache" => &mut self.allow_query_cache,
            "allow-recursion" => &mut self.allow_recursion,
            "match-clients" => &mut self.match_clients,
            "blackhole" => &mut self.blackhole,
            "match-destinations" => {
                let list = MatchList::read(block, named);
                let reading = without(&list.faults);
                self.destinations = Some((list, statement.spot.clone()));
                return reading.map(|()| true);
            }
            _ => return Ok(false),
        };
        let list = match keyword {
            "blackhole" => MatchList::read_excluded(block, named),
            _ => MatchList::read(block, named),
        };
        let (faults, is_near) = (list.faults.clone(), list.names_local_networks());
        *key = Some(list);
        without(&faults)?;
        differs_if(keyword == "blackhole", "these clients get REFUSED, not silence")?;
        differs_if(is_near, "`local` also has the private networks and fc00::/7").map(|()| true)
    }

    fn read_listen(&mut self, statement: &Statement, encryption: &Encryption, draft: &mut Draft) -> Reading {
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
            return Err("Sixfold has HTTPS only, with a certificate of its own: `tls.listen-doh`".into());
        }
        let Some(tls) = tls else {
            list.extend(endpoints);
            return without(&faults);
        };
        let one = encryption.tls(tls).filter(|one| one.certificate.is_some() && one.key.is_some());
        let one = one.ok_or(value::NO_CERTIFICATE)?;
        let known = &mut draft.model.tls;
        let is_same = |known: &Option<String>, own: &Option<String>| known.is_none() || known == own;
        let is_only = is_same(&known.certificate, &one.certificate) && is_same(&known.key, &one.key);
        require(is_only, "Sixfold has one certificate for all encrypted listeners")?;
        known.certificate.clone_from(&one.certificate);
        known.key.clone_from(&one.key);
        match http {
            Some(http) => {
                known.doh_path = encryption.path(http);
                known.listen_doh.extend(endpoints);
            }
            None => known.listen_dot.extend(endpoints),
        }
        without(&faults)
    }

    fn read_dns64(&mut self, statement: &Statement, named: &Named<'_>, draft: &mut Draft) -> Reading<bool> {
        let (word, dns64) = (statement.word(1), &mut draft.model.dns64);
        match statement.keyword() {
            "dns64" => {
                require(
                    self.syntheses.len() < synthesis::MAX_STATEMENTS,
                    "Sixfold takes at most 64 prefixes",
                )?;
                let (one, faults) = Synthesis::read(statement, value::prefix(word)?, named);
                self.syntheses.push(one);
                without(&faults)?;
            }
            "dns64-server" => dns64.ptr_server = value::name(word),
            "dns64-contact" => dns64.ptr_contact = value::name(word),
            "ipv4only-enable" => dns64.ipv4only_arpa = value::yes_no(word),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_cache(&mut self, statement: &Statement, draft: &mut Draft) -> Reading<bool> {
        let cache = &mut draft.model.cache;
        let text = statement.word(1);
        let set_seconds = |key: &mut Option<u64>| {
            let units = [('w', 7 * 86_400), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
            let units = || value::seconds(&text.to_ascii_lowercase(), &units);
            value::set(key, text.parse().ok().or_else(units).ok_or("this is not a TTL")?, range::TTL)
        };
        match statement.keyword() {
            "max-cache-size" => {
                let octets = value::octets(text);
                let octets = octets.ok_or("`cache.size` is a number of octets, and is reserved at start")?;
                value::set_cache(&mut cache.octets, octets)?;
            }
            "max-cache-ttl" => set_seconds(&mut cache.max_ttl)?,
            "max-ncache-ttl" => set_seconds(&mut cache.max_negative_ttl)?,
            "min-cache-ttl" => set_seconds(&mut cache.min_ttl)?,
            "stale-answer-enable" => self.answers_stale = text == "yes",
            "max-stale-ttl" => set_seconds(&mut self.max_stale)?,
            "prefetch" => {
                cache.prefetch = Some(text != "0");
                differs_if(text != "0", "Sixfold refreshes in the last tenth of the TTL")?;
            }
            "edns-udp-size" | "max-udp-size" => value::set_udp_size(&mut draft.model.udp_size, text)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_policy(&mut self, statement: &Statement) -> Reading {
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
        without(&faults)
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
        std::mem::take(&mut self.validation).finish(draft);
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
                Err(why) => draft.record(spot, why),
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
            draft.record(
                spot,
                "no address to listen on is left: write those of the view into `server.listen`",
            );
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
        let allowed = acl::allowed(&lists);
        let is_local = allowed.as_ref().is_none_or(|allowed| allowed.contains(&Allowed::Local));
        draft.allow(allowed, "access lists", "the lists are");
        if !is_local && lists.iter().any(MatchList::names_local_networks) {
            let why =
                "the networks of the interfaces cannot be cut by another list: name them in `server.allow`";
            draft.record(&Spot::line(1, "access lists with localnets"), why);
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
            draft.record(&first.spot, "the lists of the `dns64` statements are too long for rules");
        }
        let settings = |one: &Synthesis| (one.suffix, one.break_dnssec, one.recursive_only);
        for other in self.syntheses.iter().filter(|other| settings(other) != settings(first)) {
            let why = "suffix, break-dnssec and recursive-only hold for all prefixes: those of the first statement count";
            draft.record(&other.spot, why);
        }
    }
}

fn read_limits(statement: &Statement, draft: &mut Draft) -> Reading<bool> {
    let limits = &mut draft.model.limits;
    let text = statement.word(1);
    match statement.keyword() {
        "recursive-clients" => value::but(
            value::set_number(&mut limits.pending, text, range::COUNT),
            "Sixfold counts for each worker",
        )?,
        "tcp-clients" => value::set_number(&mut limits.tcp_connections, text, range::COUNT)?,
        // BIND counts in units of 100 ms.
        "tcp-idle-timeout" => {
            let milliseconds = value::number(text)?.saturating_mul(100);
            value::set(&mut limits.tcp_idle_ms, milliseconds, range::TCP_IDLE_MS)?;
        }
        "rate-limit" => {
            let mut faults = Vec::new();
            for inner in statement.block().unwrap_or_default() {
                match (inner.keyword(), inner.word(1)) {
                    ("responses-per-second", rate) => {
                        _ = value::set_number(&mut limits.responses_per_client, rate, range::RATE);
                    }
                    // Sixfold slips every second answer, too.
                    ("slip", "2") => {}
                    _ => faults.push(format!("`{}`", inner.spot.text)),
                }
            }
            without(&faults)?;
            return Err(Outcome::differs("Sixfold counts IPv6 clients by /64, BIND by /56"));
        }
        _ => return Ok(false),
    }
    Ok(true)
}
