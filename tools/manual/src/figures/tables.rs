//! Tables of documents, computed from the constants. A marker in a page has the name of the table, and words behind it that select its
//! content: `devices cached.closed cached.quiet`.

use super::Constants;
use super::derived::{times, value};
use super::number::written;
use sixfold::metric_families::{Family, SECTIONS, Section};
use std::fmt::Write;

/// Ends of the keys of servers of the older and of the newer release of Debian. The table `newest` leaves the older ones out.
const OLDER: &str = "-12";
const NEWER: &str = "-13";

/// Shares of answers from the cache that sizing counts with, in percent.
const SHARES: [u32; 2] = [90, 50];

/// Numbers of clients, and the queries that each sends in a second.
const CLIENTS: [u32; 4] = [1_000, 20_000, 100_000, 400_000];
const QUERIES_PER_CLIENT: u32 = 5;

/// Busy cores of the table of scaling.
const CORES: [u32; 4] = [1, 8, 32, 64];

/// Workers of the table of memory, and the value of `limits.pending` in its second column.
const WORKERS: [u32; 5] = [1, 2, 8, 32, 64];
const FEWER_PENDING: u32 = 8_192;

/// Text of a table, without the lines around it.
///
/// # Errors
///
/// There is no table of this name, or a figure of it is missing.
pub fn table(marker: &str, constants: &Constants) -> Result<String, String> {
    let mut words = marker.split_whitespace();
    let name = words.next().unwrap_or_default();
    let selected: Vec<&str> = words.collect();
    let missing = || "a figure of the section `sizing` is missing".to_owned();
    match name {
        "devices" => devices(constants, &selected, ""),
        "newest" => devices(constants, &selected, OLDER),
        "run" => run(constants, selected.first().unwrap_or(&"")),
        "processor" => processor(constants).ok_or_else(missing),
        "sizing" => clients(constants).ok_or_else(missing),
        "scaling" => scaling(constants).ok_or_else(missing),
        "memory" => memory(),
        "metrics" => Ok(metrics()),
        _ => Err("there is no such table".to_owned()),
    }
}

/// Names of the devices that a section has figures of, with their medians. Where it has servers of both releases, the older ones are left
/// out.
///
/// # Errors
///
/// The section has no figures.
pub fn medians(constants: &Constants, section: &str) -> Result<Vec<(String, f64)>, String> {
    let figure =
        |(key, name): (&str, &str)| Some((name.to_owned(), constants.figure(&format!("{section}.{key}"))?));
    let has = |release: &str| {
        let mut keys = constants.devices().into_iter().filter(|(key, _)| key.ends_with(release));
        keys.any(|device| figure(device).is_some())
    };
    let hidden = if has(NEWER) { OLDER } else { NEWER };
    let shown = constants.devices().into_iter().filter(|(key, _)| !key.ends_with(hidden));
    let found: Vec<(String, f64)> = shown.filter_map(figure).collect();
    if found.is_empty() { Err(format!("there are no figures {section}")) } else { Ok(found) }
}

/// A row for each device whose key does not end in `without`, a column for each section: the median, and the range in brackets.
fn devices(constants: &Constants, sections: &[&str], without: &str) -> Result<String, String> {
    let mut text = String::from("|");
    for section in sections {
        let title =
            constants.text(&format!("{section}.title")).ok_or_else(|| format!("{section} has no title"))?;
        let unit = constants.text(&format!("{section}.unit")).filter(|unit| !unit.is_empty());
        let _ = write!(text, " | {title}{}", unit.map(|unit| format!(", {unit}")).unwrap_or_default());
    }
    text += &format!(" |\n| --- |{}\n", " ---: |".repeat(sections.len()));
    let is_shown = |key: &str| without.is_empty() || !key.ends_with(without);
    for (key, name) in constants.devices().into_iter().filter(|(key, _)| is_shown(key)) {
        let cells: Vec<Option<String>> =
            sections.iter().map(|section| cell(constants, section, key)).collect();
        if cells.iter().any(Option::is_some) {
            let cells: Vec<String> = cells.into_iter().map(Option::unwrap_or_default).collect();
            let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
        }
    }
    Ok(text)
}

fn cell(constants: &Constants, section: &str, device: &str) -> Option<String> {
    let decimals = constants.figure(&format!("{section}.decimals"))? as usize;
    let figure = |end: &str| Some(written(constants.figure(&format!("{section}.{device}{end}"))?, decimals));
    let median = figure("")?;
    Some(match figure(".least").zip(figure(".most")) {
        Some((least, most)) => format!("{median} [{least}-{most}]"),
        None => median,
    })
}

/// Date, program, machine, conditions and command of a run.
fn run(constants: &Constants, name: &str) -> Result<String, String> {
    let of = |key: &str| {
        let path = format!("runs.{name}.{key}");
        constants.text(&path).ok_or_else(|| format!("there is no {path}"))
    };
    Ok(format!(
        "- Date: {}\n- Commit of Sixfold: {}\n- Machine: {}\n- Conditions: {}\n- Command: `{}`\n",
        of("date")?,
        of("commit")?,
        of("machine")?,
        of("conditions")?,
        of("command")?
    ))
}

/// Processor time of a query and rate of a core, by the share of answers from the cache.
fn processor(constants: &Constants) -> Option<String> {
    let [cached, resolution] = times(constants)?;
    let mut text = "| answered from the cache | processor time of a query | queries a second, a whole core | a core that is half busy |\n\
                    | --- | --- | ---: | ---: |\n"
        .to_owned();
    for share in SHARES {
        let [mean, core, half] =
            ["mean", "core", "half"].map(|name| value(constants, &format!("computed.{name}-{share}")));
        let (part, rest) = (f64::from(share) / 100.0, f64::from(100 - share) / 100.0);
        let _ = writeln!(
            text,
            "| {share} % | {part:.1} x {cached:.1} + {rest:.1} x {resolution:.1} = {:.1} µs | {} | {} |",
            mean?,
            thousands(core?),
            thousands(half?)
        );
    }
    Some(text)
}

/// A capacity in whole thousands, rounded down.
fn thousands(rate: f64) -> String {
    written((rate / 1e3).floor() * 1e3, 0)
}

/// Cores for so many clients, each core half busy.
fn clients(constants: &Constants) -> Option<String> {
    let halves = SHARES.map(|share| value(constants, &format!("computed.half-{share}")));
    let mut text = format!(
        "| clients at {QUERIES_PER_CLIENT} queries a second | queries a second | cores, half busy, {} % from the cache | {} % from the cache |\n\
         | ---: | ---: | ---: | ---: |\n",
        SHARES[0], SHARES[1]
    );
    for clients in CLIENTS {
        let rate = f64::from(clients) * f64::from(QUERIES_PER_CLIENT);
        let cores = |half: Option<f64>| Some(written((rate / half?).ceil(), 0));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            written(f64::from(clients), 0),
            written(rate, 0),
            cores(halves[0])?,
            cores(halves[1])?
        );
    }
    Some(text)
}

/// Rate and load of the wire for so many busy cores. Each query that the cache does not answer adds two queries and two replies upstream.
fn scaling(constants: &Constants) -> Option<String> {
    let [query, answer] = ["query", "answer"].map(|name| constants.figure(&format!("sizing.{name}-octets")));
    let (query, answer) = (query?, answer?);
    let columns: Vec<String> = SHARES
        .iter()
        .map(|share| format!(" queries a second, {share} % from the cache | into the card, Gbit/s | out of the card, Gbit/s |"))
        .collect();
    let mut text =
        format!("| busy cores |{}\n| ---: |{}\n", columns.concat(), " ---: |".repeat(3 * SHARES.len()));
    for cores in CORES {
        let _ = write!(text, "| {cores} |");
        for share in SHARES {
            let rate = f64::from(cores) * value(constants, &format!("computed.core-{share}"))?;
            let missed = 2.0 * f64::from(100 - share) / 100.0;
            let gigabits = |octets: f64| rate * octets * 8.0 / 1e9;
            let (into, out) = (gigabits(query + missed * answer), gigabits(answer + missed * query));
            let _ = write!(text, " {:.2} million | {into:.1} | {out:.1} |", rate / 1e6);
        }
        text.push('\n');
    }
    Some(text)
}

/// Bound of resident memory, as the server computes it.
fn memory() -> Result<String, String> {
    let mut text = format!(
        "| workers | bound with all defaults | with `limits.pending = {FEWER_PENDING}` |\n| ---: | ---: | ---: |\n"
    );
    for workers in WORKERS {
        let (usual, fewer) =
            (bound(workers, "")?, bound(workers, &format!("[limits]\npending = {FEWER_PENDING}\n"))?);
        let _ = writeln!(text, "| {workers} | {usual} MiB | {fewer} MiB |");
    }
    Ok(text)
}

/// The metrics of the server, a table for each section.
fn metrics() -> String {
    let row = |family: &Family| {
        let labels = if family.labels.is_empty() { String::new() } else { format!(" {}", family.labels) };
        let more = if family.more.is_empty() { String::new() } else { format!(" {}", family.more) };
        format!("| `{}` | {} |{labels} | {}{more} |\n", family.name, family.kind, family.sentence)
    };
    let section = |section: &Section| {
        let Section { title, introduction, families } = section;
        let introduction =
            if introduction.is_empty() { String::new() } else { format!("{introduction}\n\n") };
        let rows: String = families.iter().map(row).collect();
        format!(
            "## {title}\n\n{introduction}| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n{rows}"
        )
    };
    SECTIONS.iter().map(section).collect::<Vec<_>>().join("\n")
}

/// Bound for a configuration, in MiB.
fn bound(workers: u32, more: &str) -> Result<String, String> {
    let text = format!("[server]\nworkers = {workers}\n[upstream]\nforwarders = [\"192.0.2.53\"]\n{more}");
    let parsed = sixfold::config::parse(
        "table",
        &text,
        &sixfold::config::Overrides::default(),
        "/etc/resolv.conf".as_ref(),
    );
    let (config, _) = parsed.map_err(|_| format!("the server refuses {text}"))?;
    Ok(written(sixfold::memory::bound(&config) as f64 / f64::from(1 << 20), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSTANTS: &str = "devices = [[\"sixfold\", \"Sixfold 0.1.0\"], [\"echo\", \"an echo\"], [\"bind-12\", \"BIND 9.18.49\"]]\n\
        [runs.r]\ndate = \"2026-01-02\"\ncommit = \"0123abc\"\nmachine = \"m\"\nconditions = \"loopback\"\ncommand = \"c --x\"\n\
        [sizing]\ncached = \"c.closed.sixfold\"\nresolution = \"r.closed.sixfold\"\nquery-octets = 100\nanswer-octets = 200\n\
        [c.closed]\ntitle = \"closed\"\nunit = \"µs\"\ndecimals = 1\nsixfold = [2.0, 1.94, 2.5]\nbind-12 = 7\n\
        [r.closed]\ntitle = \"rate\"\nunit = \"\"\ndecimals = 0\nsixfold = 12.0\n";

    fn of(marker: &str) -> String {
        table(marker, &Constants::read(CONSTANTS).unwrap()).unwrap()
    }

    #[test]
    fn a_table_of_devices_has_those_with_a_figure() {
        let expected = "| | closed, µs | rate |\n| --- | ---: | ---: |\n| Sixfold 0.1.0 | 2.0 [1.9-2.5] | 12 |\n| BIND 9.18.49 | 7.0 |  |\n";
        assert_eq!(of("devices c.closed r.closed"), expected);
        assert_eq!(of("newest c.closed r.closed"), expected.replace("| BIND 9.18.49 | 7.0 |  |\n", ""));
        let constants = Constants::read(CONSTANTS).unwrap();
        let bars = |text: &str| medians(&Constants::read(text).unwrap(), "c.closed").unwrap();
        let of_name = |name: &str, figure: f64| (name.to_owned(), figure);
        let [sixfold, older, newer] = [("Sixfold 0.1.0", 2.0), ("BIND 9.18.49", 7.0), ("BIND 9.20.30", 6.0)]
            .map(|(name, figure)| of_name(name, figure));
        assert_eq!(bars(CONSTANTS), [sixfold.clone(), older], "there is no newer release");
        let both = CONSTANTS.replace(
            "[\"bind-12\", \"BIND 9.18.49\"]",
            "[\"bind-12\", \"BIND 9.18.49\"], [\"bind-13\", \"BIND 9.20.30\"]",
        );
        assert_eq!(bars(&both.replace("bind-12 = 7", "bind-12 = 7\nbind-13 = 6")), [sixfold, newer]);
        assert!(medians(&constants, "none").is_err() && table("devices none", &constants).is_err());
    }

    #[test]
    fn a_run_has_its_date_commit_machine_conditions_and_command() {
        assert_eq!(
            of("run r"),
            "- Date: 2026-01-02\n- Commit of Sixfold: 0123abc\n- Machine: m\n- Conditions: loopback\n- Command: `c --x`\n"
        );
        assert!(table("run none", &Constants::read(CONSTANTS).unwrap()).is_err());
    }

    #[test]
    fn sizing_follows_from_the_times_of_a_query() {
        // 0.9 x 2 + 0.1 x 12 = 3 us and 0.5 x 2 + 0.5 x 12 = 7 us: 333,333 and 142,857 queries a second.
        assert!(
            of("processor").contains("| 90 % | 0.9 x 2.0 + 0.1 x 12.0 = 3.0 µs | 333,000 | 166,000 |\n"),
            "{}",
            of("processor")
        );
        assert!(
            of("processor").contains("| 50 % | 0.5 x 2.0 + 0.5 x 12.0 = 7.0 µs | 142,000 | 71,000 |\n"),
            "{}",
            of("processor")
        );
        // 100,000 / 166,667 = 0.6 and 100,000 / 71,429 = 1.4.
        assert!(of("sizing").contains("| 20,000 | 100,000 | 1 | 2 |\n"), "{}", of("sizing"));
    }

    #[test]
    fn the_wire_carries_clients_and_upstreams() {
        // In: (100 + 0.2 x 200) octets x 333,333 x 8 = 0.37 Gbit/s; out: (200 + 0.2 x 100) x 333,333 x 8 = 0.59 Gbit/s.
        assert!(
            of("scaling").contains("| 1 | 0.33 million | 0.4 | 0.6 | 0.14 million | 0.3 | 0.3 |\n"),
            "{}",
            of("scaling")
        );
        assert_eq!(of("scaling").lines().count(), 6);
    }

    #[test]
    fn the_bound_of_memory_is_that_of_docs_operating_md() {
        // 16 MiB + 128 MiB + 8 x (30 MiB + 65,536 x 1,900 octets) + 80 MiB + 10,000 x 6 KiB = 1,472.6 MiB.
        assert!(of("memory").contains("| 8 | 1,473 MiB | 641 MiB |\n"), "{}", of("memory"));
    }
}
