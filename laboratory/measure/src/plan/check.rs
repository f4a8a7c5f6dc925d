//! Validation of a plan before anything is started: each error text includes the remedy.

use super::{Device, Plan, PlanError, Restart, core_list};
use crate::run::{Bisection, Cell};
use crate::units;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Searches of a whole run: a million of the shortest ones take weeks, and their trials fill the memory of a large
/// host.
const MAX_SEARCHES: u64 = 1_000_000;

/// Goals of the loss ratio.
const MAX_LOSS_GOALS: usize = 8;

/// Octets of the largest UDP answer that the load generator accepts.
const UDP_OCTETS: usize = 4096;

/// Threads of a device.
const MAX_WORKERS: u16 = 1024;

/// Hosts of a tester.
const MAX_TESTER_HOSTS: usize = 64;

/// Files of a device, and octets of all of them. A plan travels to the device's host as one line of at most 16 MiB.
const MAX_FILES: usize = 64;
const MAX_FILES_OCTETS: usize = 4 << 20;

/// The longest pause and warm-up, in milliseconds: a day.
const MAX_WAIT_MS: u64 = 86_400_000;

/// Longest time after its answer at which a name is queried again, in milliseconds, for any TTL.
const MAX_REQUERY_AGE_MS: u64 = 1_800_000;

/// Origin of the device's process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeviceOrigin {
    /// The run starts it.
    StartedByRun,
    /// It is already running.
    AlreadyRunning,
}

impl Plan {
    /// Checks that the plan does not contradict itself.
    ///
    /// # Errors
    ///
    /// [`PlanError`] with the key and the remedy: a value is outside its limits, or two keys contradict each other.
    pub fn check(&self) -> Result<(), PlanError> {
        trials(self)?;
        search(self)?;
        let origin = device(self)?;
        sweep(self, origin)?;
        addresses(self, origin)?;
        further_hosts(self)?;
        transport(self)?;
        names(self)?;
        cells(self)
    }
}

fn refuse<T>(text: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError(text.into()))
}

fn trials(plan: &Plan) -> Result<(), PlanError> {
    let trial = &plan.trial;
    if !(100..=86_400_000).contains(&trial.duration.ms()) {
        return refuse("trial.duration must be from 100ms to 24h");
    }
    if !(4..=60_000).contains(&trial.timeout.ms()) {
        return refuse("trial.timeout must be from 4ms to 60s (RFC 8219 section 9.2: at most 1s)");
    }
    if trial.pause.ms() > MAX_WAIT_MS || trial.warm_up.ms() > MAX_WAIT_MS {
        return refuse("trial.pause and trial.warm-up must be at most 24h");
    }
    Ok(())
}

fn search(plan: &Plan) -> Result<(), PlanError> {
    let search = &plan.search;
    if !(1..=1000).contains(&search.repetitions) {
        return refuse("search.repetitions must be from 1 to 1000");
    }
    if !(1.0..=1e8).contains(&search.start) || !(search.start..=1e8).contains(&search.max) {
        return refuse(
            "search.start must be at least 1 query per second, and search.max at least search.start and at most 100000000",
        );
    }
    if let Some(Bisection { low, high, width }) = search.bisection {
        let is_whole = |rate: f64| rate >= 0.0 && rate.fract() == 0.0;
        if !(is_whole(low) && is_whole(high) && is_whole(width) && width >= 1.0) {
            return refuse(
                "a bisection needs whole numbers: search.low, search.max and search.width, from 1",
            );
        }
        if high - low <= width {
            return refuse("search.width must be less than the distance from search.low to search.max");
        }
    }
    if !(0.0001..=0.5).contains(&search.precision) {
        return refuse("search.precision must be from 0.0001 to 0.5");
    }
    if !(0.1..=10.0).contains(&search.delta) {
        return refuse("search.delta must be from 0.1 (RFC 8219 section 9.2.1) to 10");
    }
    if search.loss_goals.len() > MAX_LOSS_GOALS
        || search.loss_goals.iter().any(|goal| !(goal.is_finite() && *goal > 0.0 && *goal < 1.0))
    {
        return refuse(format!(
            "search.loss-goals takes up to {MAX_LOSS_GOALS} shares of lost queries between 0 and 1, like 0.001 for 0.1 %; zero loss is \
             always searched for"
        ));
    }
    if search.curve.len() > 100 || search.curve.iter().any(|factor| !(0.01..=100.0).contains(factor)) {
        return refuse("search.curve takes up to 100 multiples of the result, from 0.01 to 100");
    }
    if !(1..=100_000).contains(&plan.correctness.names) {
        return refuse("correctness.names must be from 1 to 100000");
    }
    Ok(())
}

/// The device must be identified unambiguously, and every setting must have a meaning for it.
fn device(plan: &Plan) -> Result<DeviceOrigin, PlanError> {
    let device = &plan.device;
    let origin = match (device.template.is_empty(), device.command.is_empty(), device.address) {
        (false, true, _) | (true, false, _) => DeviceOrigin::StartedByRun,
        (true, true, Some(_)) => DeviceOrigin::AlreadyRunning,
        _ => {
            return refuse(
                "the plan must name the device: a template (--device unbound), a command line (device.command), or the address of one that is \
                 already running (--device-address); exactly one of them",
            );
        }
    };
    if device.template.is_empty() && !device.program.is_empty() {
        return refuse(
            "device.program is the path of a template's program: name the template, or leave it out",
        );
    }
    if !(1..=MAX_WORKERS).contains(&device.workers) {
        return refuse(format!("device.workers must be from 1 to {MAX_WORKERS}"));
    }
    if !device.cores.is_empty() {
        core_list(&device.cores).map_err(|why| PlanError(format!("device.cores: {why}")))?;
    }
    if origin == DeviceOrigin::StartedByRun && device.pid.is_some() {
        return refuse(
            "device.pid is for a device that is already running; the run always watches a device that it starts: leave it out",
        );
    }
    if origin == DeviceOrigin::AlreadyRunning && device.restart != Restart::Never {
        return refuse(
            "a device that is already running cannot be restarted: use device.restart = \"never\", which is also needed if the procedure \
             restarts the device",
        );
    }
    if origin == DeviceOrigin::AlreadyRunning && !device.options.is_empty() {
        return refuse("a device that is already running cannot get options: leave device.options out");
    }
    files(plan)?;
    Ok(origin)
}

/// Files are for a command line, and are in the device's own folder.
fn files(plan: &Plan) -> Result<(), PlanError> {
    let Device { command, template, files, .. } = &plan.device;
    if files.is_empty() {
        return Ok(());
    }
    if !template.is_empty() {
        return refuse(
            "device.files are for device.command; a template writes its own: use device.options (--device-option) for further lines",
        );
    }
    if command.is_empty() {
        return refuse(
            "device.files are for device.command; a device that is already running gets none: leave them out",
        );
    }
    if files.len() > MAX_FILES || files.values().map(String::len).sum::<usize>() > MAX_FILES_OCTETS {
        return refuse(format!(
            "device.files are at most {MAX_FILES} files with {} MiB in all; name large files by their path in device.command",
            MAX_FILES_OCTETS >> 20
        ));
    }
    let is_plain =
        |name: &str| Path::new(name).file_name().is_some_and(|plain| plain == name) && name.len() <= 200;
    match files.keys().find(|name| !is_plain(name)) {
        Some(name) => refuse(format!(
            "device.files: \"{name}\" is not a plain file name of up to 200 octets; files are in the device's own folder, {{dir}}: leave \
             folders out"
        )),
        None => Ok(()),
    }
}

fn sweep(plan: &Plan, origin: DeviceOrigin) -> Result<(), PlanError> {
    let Some(sweep) = &plan.sweep else { return Ok(()) };
    if sweep.values.is_empty() {
        return refuse("[sweep] needs at least one value");
    }
    if origin == DeviceOrigin::AlreadyRunning {
        return refuse(
            "a device that is already running cannot be started with other values: leave [sweep] out",
        );
    }
    if let Some(twice) =
        sweep.values.iter().enumerate().find(|(at, value)| sweep.values[..*at].contains(value))
    {
        return refuse(format!("sweep: {} appears twice; name each value once", twice.1));
    }
    if sweep.parameter == "workers" {
        let wrong = |value: &&String| !value.parse().is_ok_and(|count| (1..=MAX_WORKERS).contains(&count));
        return match sweep.values.iter().find(wrong) {
            Some(value) => refuse(format!(
                "sweep: \"{value}\" is not a number of workers; write whole numbers from 1 to {MAX_WORKERS}"
            )),
            None => Ok(()),
        };
    }
    // Without a placeholder, every value would give the same device.
    let device = &plan.device;
    let mut told = device.command.iter().chain(&device.options).chain(device.files.values());
    if !told.any(|text| text.contains("{value}")) {
        return refuse(format!(
            "sweep: {{value}}, the placeholder for the value of {}, is neither in device.command nor in device.options nor in \
             device.files (--command, --device-option, --device-file); only \"workers\" needs no placeholder",
            sweep.parameter
        ));
    }
    Ok(())
}

/// A role on another host needs an address there, and a running role needs an address that both sides know.
/// Each host of the tester has a command of its own, and the authority is no thread of one of them.
fn further_hosts(plan: &Plan) -> Result<(), PlanError> {
    let tester = &plan.tester;
    if tester.more.len() >= MAX_TESTER_HOSTS {
        return refuse(format!("the tester has at most {MAX_TESTER_HOSTS} hosts"));
    }
    if tester.more.iter().any(|more| more.host.is_empty()) {
        return refuse(
            "each [[tester.more]] needs host, the command that reaches it, like [\"ssh\", \"tester2\", \"sixfold-bench\"]",
        );
    }
    Ok(())
}

/// Connections have no groups, and their threads receive what they have asked.
fn transport(plan: &Plan) -> Result<(), PlanError> {
    let tester = &plan.tester;
    let name = tester.transport.name();
    if !tester.transport.is_stream() {
        return Ok(());
    }
    if tester.receivers.is_some_and(|receivers| receivers > 0) {
        return refuse(format!(
            "over {name} the sending threads receive, too: leave out tester.receivers, or use more sending threads \
             (tester.senders)"
        ));
    }
    if tester.group != 1 {
        return refuse(format!("tester.group is for UDP, and tester.transport is {name}: leave one out"));
    }
    if tester.connections == 0 {
        return refuse("tester.connections must be at least 1");
    }
    Ok(())
}

fn addresses(plan: &Plan, origin: DeviceOrigin) -> Result<(), PlanError> {
    let (device, authority) = (&plan.device, &plan.authority);
    let at = |address: &Option<SocketAddr>, what: &str| match address {
        Some(address) if address.ip().is_unspecified() => refuse(format!(
            "{what} is {}, to which no query can be sent: name one address of that host",
            address.ip()
        )),
        _ => Ok(()),
    };
    at(&device.address, "device.address")?;
    at(&authority.address, "authority.address")?;
    let port = |address: &Option<SocketAddr>| address.map_or(0, |address| address.port());
    if origin == DeviceOrigin::AlreadyRunning && port(&device.address) == 0 {
        return refuse("device.address needs the port at which the device listens, like [2001:2:0:1::53]:53");
    }
    if authority.external && port(&authority.address) == 0 {
        return refuse(
            "authority.external needs authority.address: the address and port of the running authority",
        );
    }
    if origin == DeviceOrigin::AlreadyRunning && port(&authority.address) == 0 {
        return refuse(
            "a device that is already running forwards to a configured authority: name the address at which the run starts it \
             (authority.address in a plan, with its port)",
        );
    }
    let host_of_authority = if authority.host.is_empty() { &plan.tester.host } else { &authority.host };
    let is_apart = |host: &Vec<String>| *host != plan.tester.host;
    if device.address.is_none() && is_apart(&device.host) {
        return refuse(
            "the device is on another host than the tester: name the address at which it listens (device.address)",
        );
    }
    if authority.address.is_none() && (is_apart(host_of_authority) || host_of_authority != &device.host) {
        return refuse(
            "the authority is on another host than the tester or the device: name the address at which it listens \
             (authority.address)",
        );
    }
    Ok(())
}

fn names(plan: &Plan) -> Result<(), PlanError> {
    let names = &plan.names;
    if names.ttl > i32::MAX as u32 {
        return refuse("names.ttl must be at most 2147483647 (RFC 2181 section 8)");
    }
    if names.addresses == 0 {
        return refuse("names.addresses must be at least 1");
    }
    // Header, question (16 octets of the address, the zone, the root, type and class) and an AAAA record of 28 octets
    // for each address.
    let octets = 12 + 16 + names.zone.len() + 2 + 4 + 28 * usize::from(names.addresses);
    if octets > UDP_OCTETS {
        return refuse(format!(
            "an answer with {} addresses has {octets} octets, and the maximum over UDP is {UDP_OCTETS}: lower names.addresses",
            names.addresses
        ));
    }
    // The self-test begins at 2 (1 + delta) times the rate.
    let start_qps = plan.search.start * 2.0 * (1.0 + plan.search.delta);
    let check = u64::from(plan.correctness.names);
    if plan.names_qps() < start_qps || names.for_trials() < check {
        let needed = plan.cells.iter().map(|cell| plan.names_needed(start_qps, *cell)).max().unwrap_or(0);
        return refuse(format!(
            "names.window has {} names for trials, and the first trial of the self-test or the correctness check needs {}: use a larger \
             window, shorter trials, or a lower search.start",
            names.for_trials(),
            needed.max(check)
        ));
    }
    Ok(())
}

fn cells(plan: &Plan) -> Result<(), PlanError> {
    if plan.cells.is_empty() {
        return refuse("[grid] has no cell");
    }
    let searches = plan.cells.len() as u64
        * u64::from(plan.search.repetitions)
        * plan.sweep.as_ref().map_or(1, |sweep| sweep.values.len() as u64);
    if searches > MAX_SEARCHES {
        return refuse(format!(
            "[grid], [sweep] and search.repetitions need {searches} searches in all; the maximum is {MAX_SEARCHES}"
        ));
    }
    let shares: BTreeSet<u64> = plan.cells.iter().map(|cell| (cell.aaaa_share * 1e6) as u64).collect();
    if plan.authority.external && shares.iter().any(|share| *share > 0) {
        return refuse(
            "the AAAA records of a running authority cannot be changed: leave grid.aaaa out, or let the run start the authority",
        );
    }
    plan.cells.iter().filter(|cell| cell.cached_share > 0.0).try_for_each(|cell| cached(plan, *cell))
}

/// Cached names are queried again no earlier than two timeouts after their answer, and then must still be in the
/// device's cache, which counts whole seconds and may have had them for a timeout already.
fn cached(plan: &Plan, cell: Cell) -> Result<(), PlanError> {
    let timeout_ms = plan.trial.timeout.ms();
    let cached_ms =
        (u64::from(plan.names.ttl) * 1000).saturating_sub(1000 + timeout_ms).min(MAX_REQUERY_AGE_MS);
    if cached_ms < 3 * timeout_ms {
        return refuse(format!(
            "names.ttl is {} s, so names leave the device's cache before they may be queried again, two timeouts after their answer: \
             use a longer TTL",
            plan.names.ttl
        ));
    }
    let whole_ms = plan.warm_up_ms(cell) + plan.trial.duration.ms();
    if cell.cached_share == 1.0 && whole_ms > cached_ms {
        return refuse(format!(
            "a trial with 100 % cached names takes {} with its warm-up, and queries the names of the warm-up to its end, which must be \
             within {}: use a longer TTL (names.ttl) or shorter trials",
            units::show(Duration::from_millis(whole_ms)),
            units::show(Duration::from_millis(cached_ms))
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::plan::Draft;

    const UNBOUND: &str = "[device]\ntemplate = \"unbound\"\n";

    fn refused(text: &str) -> String {
        match Draft::parse(text).and_then(Draft::finish) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_sweep_whose_values_change_nothing_is_refused() {
        for (sweep, word) in [
            ("parameter = \"threads\"\nvalues = [\"1\", \"2\"]", "{value}"),
            ("parameter = \"workers\"\nvalues = [\"1\", \"two\"]", "\"two\""),
            ("parameter = \"workers\"\nvalues = [\"0\"]", "from 1"),
            ("parameter = \"workers\"\nvalues = [\"2\", \"2\"]", "twice"),
        ] {
            let said = refused(&format!("{UNBOUND}[sweep]\n{sweep}\n"));
            assert!(said.contains(word), "{sweep}: {said}");
        }
        for device in [
            "command = [\"dns64\", \"--threads={value}\"]",
            "template = \"unbound\"\noptions = [\"outgoing-range: {value}\"]",
        ] {
            let text =
                format!("[device]\n{device}\n[sweep]\nparameter = \"threads\"\nvalues = [\"1\", \"2\"]\n");
            assert_eq!(refused(&text), "");
        }
    }

    #[test]
    fn a_role_on_another_host_needs_an_address() {
        let ssh = "host = [\"ssh\", \"there\", \"sixfold-bench\"]\n";
        for (text, word) in [
            ("[device]\naddress = \"[::1]:5301\"\n".to_owned(), "authority.address"),
            ("[device]\naddress = \"[::1]:0\"\n[authority]\naddress = \"[::1]:5300\"\n".to_owned(), "port"),
            (format!("{UNBOUND}{ssh}"), "device.address"),
            (format!("{UNBOUND}{ssh}address = \"[2001:2::1]:53\"\n"), "authority.address"),
            (format!("{UNBOUND}[authority]\n{ssh}"), "authority.address"),
            (format!("{UNBOUND}[tester]\n{ssh}"), "device.address"),
            (format!("{UNBOUND}address = \"[::]:53\"\n"), "no query can be sent"),
            (format!("{UNBOUND}[authority]\naddress = \"0.0.0.0:53\"\n"), "no query can be sent"),
            (format!("{UNBOUND}[authority]\nexternal = true\naddress = \"[::1]:0\"\n"), "authority.external"),
        ] {
            assert!(refused(&text).contains(word), "{text}: {}", refused(&text));
        }
        for text in [
            "[device]\naddress = \"[::1]:5301\"\n[authority]\naddress = \"[::1]:5300\"\n".to_owned(),
            format!("{UNBOUND}address = \"127.0.0.1:0\"\n[authority]\naddress = \"127.0.0.1:0\"\n"),
            format!(
                "{UNBOUND}{ssh}address = \"[2001:2::1]:53\"\n[authority]\naddress = \"[2001:2::2]:53\"\n"
            ),
            // All roles on one other host.
            format!("{UNBOUND}{ssh}[tester]\n{ssh}"),
        ] {
            assert_eq!(refused(&text), "", "{text}");
        }
    }

    #[test]
    fn settings_that_a_running_device_cannot_get_are_refused() {
        let there = "[authority]\naddress = \"[::1]:5300\"\n[device]\naddress = \"[::1]:5301\"\n";
        assert_eq!(refused(there), "");
        for (line, word) in [
            ("restart = \"trial\"", "restart"),
            ("options = [\"a\"]", "options"),
            ("workers = 0", "workers"),
            ("cores = \"first\"", "like 0,2"),
        ] {
            assert!(refused(&format!("{there}{line}\n")).contains(word), "{line}");
        }
        assert!(refused(&format!("{UNBOUND}pid = 7\n")).contains("device.pid"));
        assert!(refused("[device]\ncommand = [\"x\"]\nprogram = \"/bin/x\"\n").contains("device.program"));
    }

    #[test]
    fn names_and_ttl_must_do_for_the_trials() {
        for (text, word) in [
            ("[names]\nwindow = \"10.0.0.0/20\"\n", "larger"),
            ("[names]\nttl = 4\n[grid]\ncached = [0.2]\n", "longer TTL"),
            ("[names]\nttl = 60\n[grid]\ncached = [1]\n", "100 % cached"),
            ("[trial]\nduration = \"31m\"\n[grid]\ncached = [1]\n", "shorter trials"),
            ("[names]\nttl = 4000000000\n", "RFC 2181"),
            ("[names]\naddresses = 0\n", "at least 1"),
            ("[names]\naddresses = 200\n", "lower names.addresses"),
            ("[trial]\nwarm-up = \"99h\"\n", "24h"),
            ("[grid]\naaaa = [0.2]\n[authority]\nexternal = true\naddress = \"[::1]:53\"\n", "grid.aaaa"),
        ] {
            assert!(refused(&format!("{text}{UNBOUND}")).contains(word), "{text}");
        }
        for (ttl, cached) in [("1", "0"), ("5", "0.2"), ("65", "1")] {
            let text = format!("[names]\nttl = {ttl}\n[grid]\ncached = [{cached}]\n{UNBOUND}");
            assert_eq!(refused(&text), "", "{text}");
        }
    }

    #[test]
    fn a_run_that_would_never_end_is_refused() {
        let shares: Vec<String> = (0..200).map(|share| format!("{}", share as f64 / 200.0)).collect();
        let shares = shares.join(", ");
        let text = format!(
            "[grid]\naaaa = [{shares}]\ncached = [{shares}]\n[search]\nrepetitions = 1000\n{UNBOUND}"
        );
        assert!(refused(&text).contains("searches"));
    }
}
