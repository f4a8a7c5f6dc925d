//! The topics of the method: each is a function of one record, and names no device. A fact that the record lacks is
//! left out.

use crate::command_line::command_line;
use crate::number;
use crate::surroundings;
use crate::text_list::{and, or_one};
use measure::checklist::{broken, is_beyond};
use measure::order::{Transport, Validity};
use measure::run::{Bisection, CellResult, Kept, Participant, Rule, Run, Trial};
use measure::search::TESTER_TRIES;
use measure::starvation;
use std::net::SocketAddr;

/// A topic and the function that makes its text from a record.
pub(super) type Topic = (&'static str, fn(&Run) -> String);

/// Source addresses that are named one by one.
const SOURCES_SHOWN: usize = 8;

/// The topics in order.
pub(super) const TOPICS: [Topic; 13] = [
    ("Time", time),
    ("Hosts", hosts),
    ("Links", links),
    ("Tuning", tuning),
    ("Device", device),
    ("Load", load),
    ("Tester and authority", equipment),
    ("Valid replies", valid),
    ("Search", search),
    ("Results", results),
    ("Self-test", self_test),
    ("Correctness", correctness),
    ("Deviations from RFC 8219", deviations),
];

fn time(run: &Run) -> String {
    let text = match (&*run.started, &*run.ended) {
        ("", _) => String::new(),
        (started, "") => format!("The run began at {started}."),
        (started, ended) if run.complete => format!("The run began at {started} and ended at {ended}."),
        (started, ended) => {
            format!("The run began at {started}; it was not complete when it was recorded, at {ended}.")
        }
    };
    let devices: Vec<&str> = run.settings.turns.iter().map(String::as_str).collect();
    if text.is_empty() || devices.is_empty() {
        return text;
    }
    format!(
        "{text} The devices {} took turns, search by search in this order. Each was stopped while another had its turn, so it began every \
         search with an empty cache.",
        and(&devices)
    )
}

/// The roles of a host: `the tester and the device`.
fn roles(host: &surroundings::Host) -> String {
    let roles: Vec<String> = host.roles.iter().map(|role| format!("the {role}")).collect();
    and(&roles.iter().map(String::as_str).collect::<Vec<_>>())
}

/// These facts of a host, as `name value`, those that are recorded.
fn facts(host: &surroundings::Host, wanted: &[&str]) -> Vec<String> {
    let known = wanted.iter().filter_map(|name| Some((name, host.facts.get(name)?)));
    known.filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name} {value}")).collect()
}

fn hosts(run: &Run) -> String {
    let wanted = ["processor", "cores", "memory", "virtualization", "distribution", "kernel"];
    let sentence = |host: &surroundings::Host| {
        let on = if host.name.is_empty() { "a host".to_owned() } else { format!("the host {}", host.name) };
        let facts = facts(host, &wanted);
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
        capital(&format!("{} ran on {on}{facts}.", roles(host)))
    };
    surroundings::hosts(run).iter().map(sentence).collect::<Vec<_>>().join(" ")
}

fn links(run: &Run) -> String {
    let mut sentences: Vec<String> = Vec::new();
    let address = |text: &str| text.parse::<SocketAddr>().map(|it| it.ip().to_string()).ok();
    if let Some(device) = address(&run.device.address) {
        let authority = address(&run.settings.authority);
        let authority = authority.map_or(String::new(), |it| format!(", and the authority {it}"));
        sentences.push(format!("The device had the address {device}{authority}."));
    }
    for host in &surroundings::hosts(run) {
        for (name, value) in &host.facts {
            if let Some(address) = name.strip_prefix("interface to ") {
                sentences.push(format!("From the host of {} to {address}: {value}.", roles(host)));
            }
        }
    }
    sentences.join(" ")
}

fn tuning(run: &Run) -> String {
    let wanted = [
        "governor",
        "turbo",
        "smt",
        "isolated cores",
        "boot parameters",
        "mitigations",
        "clock source",
        "connection tracking",
        "net.core.rmem_max",
        "net.core.wmem_max",
        "net.core.netdev_max_backlog",
    ];
    let mut sentences: Vec<String> = Vec::new();
    for host in &surroundings::hosts(run) {
        let mut facts = facts(host, &wanted);
        let offloads = host.facts.iter().filter(|(name, _)| name.starts_with("offloads of "));
        facts.extend(offloads.map(|(name, value)| format!("{name} {value}")));
        if !facts.is_empty() {
            sentences.push(format!("Settings on the host of {}: {}.", roles(host), facts.join("; ")));
        }
    }
    if !run.device.cores.is_empty() {
        sentences.push(format!("The device ran on the cores {}.", run.device.cores));
    }
    sentences.join(" ")
}

fn device(run: &Run) -> String {
    let device = &run.device;
    let mut text = match device.command.as_slice() {
        [] => "The device was already running, and its configuration is not recorded.".to_owned(),
        command => {
            let names: Vec<&str> = device.files.keys().map(String::as_str).collect();
            let with = match names.as_slice() {
                [] => String::new(),
                [name] => format!(", with the configuration file {name}, whose text is in the record"),
                names => {
                    format!(", with the configuration files {}, whose texts are in the record", and(names))
                }
            };
            format!("The device was started as: {}{with}.", command_line(command))
        }
    };
    if run.settings.as_shipped {
        text += " Its buffers and limits were its own defaults (as shipped).";
    } else if run.settings.receive_buffer > 0 {
        text += " Limits that one busy client would reach were raised as far as its configuration says, and its receive buffer was to be \
                 that of all devices.";
    }
    if !device.version.is_empty() {
        text += &format!(" It reports its version as: {}.", device.version.trim_end_matches('.'));
    }
    if let Some((parameter, values)) = &device.sweep {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        text += &format!(" The parameter {parameter} had the value {}.", or_one(&values));
    }
    text
}

fn load(run: &Run) -> String {
    let settings = &run.settings;
    if settings.trial_ms == 0 {
        return String::new();
    }
    let mut text = format!(
        "In each trial the tester sent queries for AAAA records at a constant rate for {}, and the timeout of a query was {}.",
        number::milliseconds(settings.trial_ms),
        number::milliseconds(settings.timeout_ms)
    );
    if settings.warm_up_ms > 0 {
        text += &format!(
            " Before that it sent the load for {} without measuring it.",
            number::milliseconds(settings.warm_up_ms)
        );
    }
    text += &format!(
        " Trials were {} apart. The names stood for the IPv4 addresses of {} in the zone {}.",
        number::milliseconds(settings.pause_ms),
        settings.names,
        settings.zone
    );
    let chain = match settings.cname_depth {
        0 => String::new(),
        1 => " behind one CNAME record".to_owned(),
        depth => format!(" behind {depth} CNAME records"),
    };
    text += &format!(
        " Each name had {} record{} of its kind (A, or AAAA where it had AAAA records){chain}, with a TTL of {}\u{a0}s. The DNS64 prefix was {}.",
        settings.addresses,
        if settings.addresses == 1 { "" } else { "s" },
        number::count(u64::from(settings.ttl)),
        settings.prefix
    );
    text + &cells(run)
}

fn equipment(run: &Run) -> String {
    let Some(equipment) = &run.equipment else { return String::new() };
    let threads = |count: u16, what: &str| match count {
        1 => format!("one {what} thread"),
        count => format!("{count} {what} threads"),
    };
    let on = |cores: &[u16]| match cores {
        [] => String::new(),
        [core] => format!(" on core {core}"),
        cores => {
            let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
            format!(" on the cores {}", and(&cores.iter().map(String::as_str).collect::<Vec<_>>()))
        }
    };
    let receivers = match equipment.receivers {
        0 => ", which received too".to_owned(),
        count => format!(" and {}", threads(count, "receiving")),
    };
    let transport = equipment.transport;
    let plural = |count: u16| if count == 1 { "" } else { "s" };
    let lines = match (transport, equipment.ports, equipment.connections) {
        (Transport::Udp, ports, _) => format!("{ports} source port{} for each sending thread", plural(ports)),
        (Transport::Tcp | Transport::Tfo, ..) => "a connection for each query".to_owned(),
        (.., open) => format!("{open} open connection{} for each sending thread", plural(open)),
    };
    let mut text = format!(
        "The tester had {}{receivers}{}, with {lines}",
        threads(equipment.senders, "sending"),
        on(&equipment.tester_cores),
    );
    if !equipment.sources.is_empty() {
        let sources: Vec<&str> = equipment.sources.iter().map(String::as_str).collect();
        text += &match sources.as_slice() {
            [first, .., last] if sources.len() > SOURCES_SHOWN => {
                format!(" and each of {} source addresses from {first} to {last}", sources.len())
            }
            few => format!(" and each of the source addresses {}", and(few)),
        };
    }
    if equipment.random_ports {
        text += ", in a pseudorandom order (RFC 4814)";
    }
    text += match equipment.spin {
        true => "; it waited in a busy loop.",
        false => ".",
    };
    if transport != Transport::Udp {
        text += &format!(
            " The queries went to the device over {}; the device asked its authority, and the self-test was made, over UDP.",
            transport.title()
        );
        if transport.is_encrypted() {
            text += " The tester verified no certificate.";
        }
    }
    if equipment.hosts > 1 {
        text += &format!(
            " {} hosts sent equal parts of each load at the same time, each with these threads; their counts were added, and their \
             latencies are one distribution.",
            equipment.hosts
        );
    }
    text += &match equipment.group {
        1 if transport != Transport::Udp => " The authority answered with single datagrams (no UDP GSO or GRO).".to_owned(),
        1 => " Each query was a datagram of its own, and the authority answered with single datagrams (no UDP GSO or GRO).".to_owned(),
        group => format!(
            " Queries left in groups of up to {group} from one port: those that were due together left in one system call (UDP GSO), and \
             tester and authority received datagrams of equal length together (UDP GRO). Single datagrams cost more."
        ),
    };
    if equipment.burst > 1 {
        text += &format!(" {} queries were due at the same instant.", equipment.burst);
    }
    text += &match equipment.authority_threads {
        None => " The run did not start the authority.".to_owned(),
        Some(0) => " The thread of the tester served the authority.".to_owned(),
        Some(count) => {
            format!(" The authority had {}{}.", threads(count, "UDP"), on(&equipment.authority_cores))
        }
    };
    text + &buffers(run)
}

/// The receive buffers of all participants, and threads and cores of the device.
fn buffers(run: &Run) -> String {
    let octets = |(low, high): (u64, u64)| match low == high {
        true => number::count(low),
        false => format!("{} to {}", number::count(low), number::count(high)),
    };
    let known = |role: &str| run.participants.get(role).filter(|it| it.receive_buffer.0 > 0);
    let of = |role: &str, whose: &str, found: &Participant| {
        let (sockets, s) = (found.sockets, if found.sockets == 1 { "" } else { "s" });
        let coalescing = match found.coalescing.filter(|_| role == "device") {
            Some(true) => ", which received datagrams together (UDP GRO)",
            Some(false) => ", which received datagrams one by one (no UDP GRO)",
            None => "",
        };
        format!(
            "{} octets at the {sockets} socket{s} of the {whose}{coalescing}",
            octets(found.receive_buffer)
        )
    };
    let roles = [("tester", "tester"), ("device", "device"), ("authority", "authority")];
    let parts: Vec<String> =
        roles.iter().filter_map(|(role, whose)| Some(of(role, whose, known(role)?))).collect();
    let mut text = String::new();
    if !parts.is_empty() {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        text += &format!(
            " The receive buffers of the UDP sockets, as the kernel counts them (twice the size that a program asks for), had {}.",
            and(&parts)
        );
    }
    let Some(device) = run.participants.get("device") else { return text };
    if device.raised > 0 {
        text += " The run raised the buffer of the device from outside, because the server has no setting for it, or the kernel had cut \
                 the size that it asked for.";
    }
    if device.threads > 0 {
        let (threads, s) = (device.threads, if device.threads == 1 { "" } else { "s" });
        let cores: Vec<&str> = device.cores.split(',').filter(|core| !core.is_empty()).collect();
        let cores = if cores.is_empty() { String::new() } else { format!(", on the cores {}", and(&cores)) };
        text += &format!(" The device had {threads} thread{s}{cores}.");
    }
    text
}

fn cells(run: &Run) -> String {
    let shares = |of: fn(&measure::run::CellResult) -> f64| {
        let mut shares: Vec<f64> = run.results.iter().map(of).collect();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        shares.into_iter().map(number::percent).collect::<Vec<_>>()
    };
    let (aaaa, cached) = (shares(|result| result.cell.aaaa_share), shares(|result| result.cell.cached_share));
    match (aaaa.as_slice(), cached.as_slice()) {
        ([], _) | (_, []) => String::new(),
        ([aaaa], [cached]) => {
            format!(" The share of names with AAAA records was {aaaa}, and that of cached names {cached}.")
        }
        (aaaa, cached) => {
            let list = |shares: &[String]| and(&shares.iter().map(String::as_str).collect::<Vec<_>>());
            format!(
                " The shares of names with AAAA records were {}, and those of cached names {}.",
                list(aaaa),
                list(cached)
            )
        }
    }
}

fn valid(run: &Run) -> String {
    if run.settings.validity == Validity::Answered {
        return "A rate passed if every query got a valid reply in time. A reply was valid if its RCODE was 0 and it had an answer \
                record of any kind: the rule of dns64perf++. RFC 8219 demands an AAAA record."
            .to_owned();
    }
    "A rate passed if every query got a valid reply in time. A reply was valid only if its flags, response code, question and \
     every record were as expected: number of records, owner names, type, class, TTL, prefix, and embedded address."
        .to_owned()
}

fn search(run: &Run) -> String {
    let settings = &run.settings;
    if settings.repetitions == 0 {
        return String::new();
    }
    if let Some(Bisection { low, high, width }) = settings.bisection {
        return format!(
            "Each search bisected the interval from {} to {} queries/s: its middle, rounded down, became the lower end if the trial \
             passed and the upper end if it failed, until the ends were at most {} queries/s apart. All searches were independent of \
             each other. Each search was done {} times.",
            number::tick(low),
            number::tick(high),
            number::tick(width),
            settings.repetitions
        );
    }
    format!(
        "A short search from {} queries/s found the last doubling of that rate that passed, and all searches began there, \
         independently of each other. A search doubled the rate until one rate had passed and one had failed, then bisected the \
         interval geometrically until it was at most {} of its upper end. No rate above {} queries/s was tried. Each search was \
         done {} times.",
        number::rate(settings.start_qps),
        number::percent(settings.precision),
        number::rate(settings.max_qps),
        settings.repetitions
    )
}

fn results(run: &Run) -> String {
    let mut text = "The results are the median and the 1st and 99th percentile of the repetitions, by RFC 2330 section 11.3. In a \
                    strict result, one failed trial excludes a rate, as RFC 8219 has it."
        .to_owned();
    if run.settings.confirm {
        text += " In a confirmed result, which is an addition to the RFC, a rate is excluded only if a second trial at it fails too.";
    }
    if !run.settings.loss_goals.is_empty() {
        let goals: Vec<String> = run
            .settings
            .loss_goals
            .iter()
            .map(|goal| format!("{} %", number::shortest(100.0 * goal)))
            .collect();
        text += &format!(
            " Each repetition went on to the highest rates at which at most {} of the queries got no valid reply in time, with the trials \
             of its search without loss and further ones that the goals shared (as in MLRsearch); one trial above a goal excluded its \
             rate.",
            and(&goals.iter().map(String::as_str).collect::<Vec<_>>())
        );
    }
    if run.results.iter().any(|result| result.cpu_us_per_query.is_some()) {
        text += " The computing-power-relative performance is the number of valid replies for each second of CPU time, in user mode and \
                 in the kernel, that the threads of the device used at the highest rate without loss.";
    }
    text += &format!(
        " A trial in which the tester itself was the bottleneck was repeated, in the self-test, too, and counted as failed after \
         {TESTER_TRIES} attempts; the result is then a lower bound."
    );
    let is_watched = |trial: &Trial| trial.device.as_ref().is_some_and(|used| used.others_s.is_some());
    if run.trials.iter().any(is_watched) {
        text += &format!(
            " So was a failed trial in which other programs had the cores of the device: its threads waited for a core for at least {} \
             of the time, other programs ran on its cores for as long, and neither its busiest thread nor its cores were busy for {} of \
             the time.",
            number::percent(starvation::WAITED_SHARE),
            number::percent(starvation::BUSY_SHARE)
        );
    }
    let sum = |of: fn(&CellResult) -> u32| run.results.iter().map(of).sum::<u32>();
    let (limited, starved) =
        (sum(|result| result.tester_limited_trials), sum(|result| result.starved_trials));
    if limited + starved > 0 {
        text += &format!(
            " In the searches, {limited} trials were limited by the tester, and {starved} by such programs."
        );
    }
    text
}

fn self_test(run: &Run) -> String {
    let Some(test) = &run.self_test else {
        return "There was no self-test of the tester.".to_owned();
    };
    let mut text = format!(
        "Without the device, tester and authority exchanged {} queries/s with every reply valid within {}, so devices may be \
         measured at up to {} queries/s: the rate divided by 2(1+d) with d = {}. (RFC 8219 section 9.2.1 prints 2*(r+delta), which \
         adds a number to a rate.)",
        number::rate(test.certified_qps),
        number::milliseconds(test.timeout_ms),
        number::rate(test.device_qps),
        number::tick(test.delta)
    );
    let of_results = crate::certificates::sentence(run);
    if !of_results.is_empty() {
        text += " ";
        text += &of_results;
    }
    text
}

fn correctness(run: &Run) -> String {
    let Some(check) = &run.correctness else { return String::new() };
    format!(
        "Before all timing, {} of {} names got a valid reply.",
        number::count(check.valid),
        number::count(check.names)
    )
}

fn deviations(run: &Run) -> String {
    let shown = |rule: &Rule| format!("section {}: {} ({})", rule.section, rule.rule, rule.because);
    let is_unchecked = |rule: &&Rule| rule.state == Kept::NotChecked && !is_beyond(rule);
    let broken: Vec<String> = broken(&run.checklist).map(shown).collect();
    let mut text = match broken.as_slice() {
        [] if run.checklist.is_empty() => return "Compliance with RFC 8219 was not judged.".to_owned(),
        [] => "All rules that could be checked and that apply were kept.".to_owned(),
        [one] => format!("One rule was not kept: {one}."),
        several => format!("{} rules were not kept: {}.", several.len(), several.join("; ")),
    };
    let unchecked: Vec<String> = run.checklist.iter().filter(is_unchecked).map(shown).collect();
    if !unchecked.is_empty() {
        text += &format!(" Not checked: {}.", unchecked.join("; "));
    }
    text
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}
