//! Devices under test: Sixfold, the bare reflector, the bare echo, and the other servers, by the templates of `device`: those of this
//! system, and those in the root of another one. Each has one thread on core 0 (Sixfold also two, on that core or on both). All forward
//! everything to the tester.

use crate::device::{InstalledTemplate, Settings};
use crate::lab::device::end_of;
use crate::perf::PART_COMMAND;
use crate::perf::kind::{Kind, Setup};
use crate::perf::limits;
use crate::perf::names::{PREFIX, ZONE};
use crate::perf::quota::Quota;
use crate::perf::tester::Answers;
use crate::process::supervisor::LaunchRequest;
use crate::process::{Process, own_program};
use crate::sockets;
use crate::usage::Usage;
use servers::LaunchPlan;
use servers::WorkingFolder;
use servers::process::free_address;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Instant;

/// An installed device.
#[derive(Clone, Debug)]
pub struct Device {
    /// Kind of the device.
    pub kind: Kind,
    /// Template of a server; the others are parts of this program.
    template: Option<InstalledTemplate>,
}

impl Device {
    /// Finds the program of a device. `sixfold`: that of Sixfold, if it was given.
    ///
    /// # Errors
    ///
    /// The program is not installed; the error says how to install it.
    pub fn find(kind: Kind, sixfold: Option<&Path>) -> Result<Device, String> {
        let given = sixfold.filter(|_| kind == Kind::Sixfold).map(|path| path.display().to_string());
        let find = || InstalledTemplate::find(kind.name(), given.as_deref());
        let template = kind.is_server().then(find).transpose().map_err(|error| error.to_string())?;
        Ok(Device { kind, template })
    }

    /// Finds the program of another project's server in the root of another system. `None`: the kind is not one of another project's.
    pub fn find_in(kind: Kind, root: &Path) -> Option<Result<Device, String>> {
        let found = Kind::RIVALS.contains(&kind).then(|| InstalledTemplate::find_in(kind.name(), root))?;
        let device = |template| Device { kind, template: Some(template) };
        Some(found.map(device).map_err(|error| error.to_string()))
    }

    /// Name in tables: with its version if it is another project's, since there may be two.
    pub fn name(&self) -> String {
        match self.with_version() {
            Some(name) if self.kind != Kind::Sixfold => name,
            _ => self.kind.name().to_owned(),
        }
    }

    /// Name and version; `None` for a device that has no version of its own.
    pub fn with_version(&self) -> Option<String> {
        let said = self.template.as_ref()?.version();
        let version = if self.kind == Kind::Sixfold { own_version(said) } else { find_version(said) };
        version.map(|version| format!("{} {version}", self.kind.name()))
    }

    /// Starts the device.
    ///
    /// # Errors
    ///
    /// A file cannot be written, no port is free, the program cannot be started, or it cannot be put under the quota.
    pub fn start(&self, upstream: SocketAddr, setup: Setup) -> io::Result<Running> {
        let folder = match &self.template {
            Some(template) => WorkingFolder::new_in(&template.folders()),
            None => WorkingFolder::new(),
        };
        let folder = folder?;
        let address = free_address(Ipv6Addr::LOCALHOST.into())?;
        let plan = self.plan(address, upstream, &setup, folder.path())?;
        let process = start(plan, setup.cores, folder)?;
        if let Some(quota) = &setup.quota {
            quota.add(process.pid())?;
        }
        let mut running = Running { address, answers: self.kind.answers(), process, _quota: setup.quota };
        running.equalize_receive_buffer();
        Ok(running)
    }

    fn plan(
        &self,
        address: SocketAddr,
        upstream: SocketAddr,
        setup: &Setup,
        folder: &Path,
    ) -> io::Result<LaunchPlan> {
        let own = |words: &[String]| -> io::Result<LaunchPlan> {
            let program = [own_program()?.display().to_string(), PART_COMMAND.to_owned()];
            Ok(LaunchPlan { command: [&program, words].concat(), ..LaunchPlan::default() })
        };
        match (&self.template, self.kind) {
            (Some(template), _) => {
                let mut settings = Settings::new(address, upstream, (PREFIX, 96), ZONE);
                settings.workers = setup.workers;
                settings.as_shipped = setup.as_shipped;
                settings.options.clone_from(&setup.options);
                settings.trust_anchor.clone_from(&setup.trust_anchor);
                Ok(template.plan(&settings.task(), folder))
            }
            (None, Kind::Echo) => own(&["echo".to_owned(), address.to_string()]),
            (None, _) => own(&["reflect".to_owned(), address.to_string(), upstream.to_string()]),
        }
    }
}

/// Starts a program on these cores, in the syntax of taskset. `folder` becomes its own.
///
/// # Errors
///
/// The program, or its supervisor, cannot be started.
pub fn start(plan: LaunchPlan, cores: &str, folder: WorkingFolder) -> io::Result<Process> {
    let request = LaunchRequest { folder: folder.path().to_owned(), plan, cores: cores.to_owned() };
    Process::start(request, folder).map_err(io::Error::other)
}

/// Version and commit of Sixfold: its first line without the name, `0.1.0 (commit 0123456789ab)`.
fn own_version(text: &str) -> Option<String> {
    text.lines().next()?.strip_prefix("sixfold ").map(str::to_owned)
}

/// The version that a program tells: its first word that begins with a digit and has a dot.
fn find_version(text: &str) -> Option<String> {
    let mut words = text.split_ascii_whitespace();
    let word =
        words.find(|word| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.'))?;
    // A packager's suffix says nothing about speed.
    Some(word.split(['-', '+', '~']).next().unwrap_or(word).to_owned())
}

/// The devices of a kind, each with its name and its place in the list; the kind's name without a place if there is none.
pub fn of_kind(devices: &[&Device], kind: Kind) -> Vec<(String, Option<usize>)> {
    let places = devices.iter().enumerate().filter(|(_, device)| device.kind == kind);
    let found: Vec<_> = places.map(|(place, device)| (device.name(), Some(place))).collect();
    if found.is_empty() { vec![(kind.name().to_owned(), None)] } else { found }
}

/// A running device. Dropping it ends the device, and then removes the group of its quota, which must be empty.
pub struct Running {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Its answers.
    pub answers: Answers,
    process: Process,
    _quota: Option<Quota>,
}

impl Running {
    /// Process ID.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Resources that it has used so far.
    pub fn usage(&self) -> Usage {
        Usage::read(&[self.pid()])
    }

    /// Its resident memory, now and at most so far, in MiB.
    pub fn memory_mib(&self) -> (f64, f64) {
        let mib = |octets: u64| octets as f64 / f64::from(1 << 20);
        let usage = self.usage();
        usage.processes.first().map_or((0.0, 0.0), |own| (mib(own.resident), mib(own.resident_peak)))
    }

    /// Its end and its last output: the reason if it does not answer.
    pub fn output(&mut self) -> String {
        self.process.log().map_or_else(|error| error.to_string(), |log| end_of(&log))
    }

    /// Waits until the device listens, and gives its sockets the receive buffer of every device. One that does not listen in time
    /// gives no right answer either, which the caller finds.
    fn equalize_receive_buffer(&mut self) {
        let (pids, port, begun) = ([self.pid()], self.address.port(), Instant::now());
        while sockets::listening(&pids, port).is_empty()
            && begun.elapsed() < limits::LISTEN_TIMEOUT
            && self.process.log().is_ok_and(|log| log.ended.is_none())
        {
            std::thread::sleep(limits::LISTEN_POLL);
        }
        // A server with several sockets binds them one after the other.
        std::thread::sleep(limits::LISTEN_POLL);
        if let Some(warning) = sockets::warning_of_small_buffer(&sockets::read(&pids, port, true)) {
            eprintln!("{}: {warning}", self.address);
        }
    }
}

/// The receive buffers of the devices in words. They are equal if this process may set those of other processes; a socket of its own
/// shows it.
pub fn describe_receive_buffers() -> String {
    let probe = || {
        let socket = UdpSocket::bind("[::1]:0")?;
        let (own, port) = ([std::process::id()], socket.local_addr()?.port());
        sockets::read(&own, port, true);
        Ok(sockets::listening(&own, port).iter().any(|found| found.receive_buffer >= sockets::WANTED))
    };
    match probe() {
        Ok::<bool, io::Error>(true) => {
            format!("The sockets of each device have a receive buffer of {} MiB.", (sockets::WANTED / 2) >> 20)
        }
        _ => "The receive buffers of the devices are as each server makes them, because this process may not raise them (run it \
              as root)."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_the_way_to_get_it() {
        let error = Device::find(Kind::Sixfold, Some(Path::new("/nowhere/sixfold"))).unwrap_err();
        assert!(error.contains("cargo build --profile dist -p sixfold"), "{error}");
    }

    #[test]
    fn the_version_is_found_in_what_the_servers_say() {
        let said = [
            ("Version 1.17.1\n\nConfigure line: --build=x86_64-linux-gnu --prefix=/usr", "1.17.1"),
            ("BIND 9.20.11-4-Debian (Stable Release) <id:>", "9.20.11"),
            ("Sep 03 10:00:00 PowerDNS Recursor 5.2.4 (C) PowerDNS.COM BV", "5.2.4"),
            ("Knot Resolver, version 5.7.5", "5.7.5"),
        ];
        for (text, expected) in said {
            assert_eq!(find_version(text).as_deref(), Some(expected));
        }
    }

    #[test]
    fn sixfold_tells_its_commit_too() {
        let said = "sixfold 0.1.0 (commit 0123456789ab)\nfeatures: sockets udp\n";
        assert_eq!(own_version(said).as_deref(), Some("0.1.0 (commit 0123456789ab)"));
        assert_eq!(own_version("sixfold-bench 0.1.0\n"), None);
    }
}
