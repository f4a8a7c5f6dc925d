//! Devices under test: Sixfold, the bare reflector, the bare echo, and the Debian packages of the other servers, those of this system
//! and those of another Debian root, which run there by `chroot`. Each has one thread on core 0 (Sixfold also two, on that core or on
//! both).

use crate::configuration::configuration;
use crate::kind::{Kind, Setup};
use crate::limits;
use crate::process::{Folder, Process};
use crate::tester::Check;
use datapath::laboratory::device_sockets::{self, WANTED};
use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// An installed device.
#[derive(Clone, Debug)]
pub struct Device {
    /// Kind of the device.
    pub kind: Kind,
    /// Path of its program, in `root` if there is one.
    program: PathBuf,
    /// Folder of another system, in which it runs.
    root: Option<PathBuf>,
    /// Version of a server.
    version: Option<String>,
}

impl Device {
    /// Finds the program of a device.
    ///
    /// # Errors
    ///
    /// The program is not installed; the error says how to install it.
    pub fn find(kind: Kind, sixfold: Option<&Path>) -> Result<Device, String> {
        let Some((name, package, option)) = kind.package() else { return Device::find_own(kind, sixfold) };
        let missing = || format!("{name} is not installed: apt-get install {package}");
        let program = in_path(name).ok_or_else(missing)?;
        let version = version(Command::new(&program).arg(option));
        Ok(Device { kind, program, root: None, version })
    }

    /// Finds the program of another project's server in the root of another system. `None`: the kind is not one of another project's.
    pub fn find_in(kind: Kind, root: &Path) -> Option<Result<Device, String>> {
        let (name, package, option) = kind.package()?;
        let program = ["/usr/sbin", "/usr/bin"].map(|folder| Path::new(folder).join(name));
        let found =
            program.into_iter().find(|path| root.join(path.strip_prefix("/").unwrap_or(path)).is_file());
        let Some(program) = found else {
            return Some(Err(format!(
                "{name} is not in {}: mmdebstrap --variant=minbase --include={package} trixie DIR makes such a folder",
                root.display()
            )));
        };
        let version = version(Command::new("chroot").arg(root).arg(&program).arg(option));
        Some(Ok(Device { kind, program, root: Some(root.to_owned()), version }))
    }

    fn find_own(kind: Kind, sixfold: Option<&Path>) -> Result<Device, String> {
        let own = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let program = match kind {
            Kind::Sixfold => sixfold.map_or_else(|| own.with_file_name("sixfold"), Path::to_owned),
            _ => own,
        };
        if !program.is_file() {
            return Err(
                "sixfold is not built: cargo build --profile dist -p sixfold, or give --sixfold PATH"
                    .to_owned(),
            );
        }
        let version = match kind {
            Kind::Sixfold => {
                said(Command::new(&program).arg("--version")).and_then(|text| own_version(&text))
            }
            _ => None,
        };
        Ok(Device { kind, program, root: None, version })
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
        self.version.as_ref().map(|version| format!("{} {version}", self.kind.name()))
    }

    /// Starts the device.
    ///
    /// # Errors
    ///
    /// A file cannot be written, no port is free, or the program cannot be started.
    pub fn start(&self, upstream: SocketAddr, setup: Setup) -> io::Result<Running> {
        let temporary = self.root.as_ref().map_or_else(std::env::temp_dir, |root| root.join("tmp"));
        let folder = Folder::new_in(&temporary, self.kind.name())?;
        // The device sees its files under another path.
        let seen = match self.root.as_ref().and_then(|root| folder.path().strip_prefix(root).ok()) {
            Some(path) => Path::new("/").join(path),
            None => folder.path().to_owned(),
        };
        let address = free_address()?;
        let (file, text) = configuration(self.kind, &seen, address, upstream, &setup);
        fs::write(folder.path().join(file), text)?;
        let root = self.root.iter().flat_map(|root| ["chroot".to_owned(), root.display().to_string()]);
        let mut command: Vec<String> = root.chain([self.program.display().to_string()]).collect();
        let path = seen.join(file).display().to_string();
        match self.kind {
            Kind::Sixfold => command.extend(["serve".into(), "--config".into(), path]),
            Kind::Reflector => command.extend(["reflect".into(), address.to_string(), upstream.to_string()]),
            Kind::Echo => command.extend(["echo".into(), address.to_string()]),
            Kind::Unbound => command.extend(["-d".into(), "-c".into(), path]),
            Kind::Bind => {
                command.extend(["-f", "-n", "1", "-U", "1", "-c"].map(String::from).into_iter().chain([path]))
            }
            Kind::Powerdns => command.extend(self.powerdns_options(&seen)),
            Kind::KnotResolver => {
                command.extend(["-n", "-q", "-c"].map(String::from));
                command.extend([path, seen.display().to_string()]);
            }
        }
        let process = Process::start(&command, setup.cores, setup.quota, folder)?;
        let mut running = Running { address, check: self.kind.check(), process };
        running.equalize_receive_buffer();
        Ok(running)
    }

    /// Options of the recursor. From version 5.2 on it reads its older form of configuration only if it is told so.
    fn powerdns_options(&self, folder: &Path) -> Vec<String> {
        let mut options = vec![format!("--config-dir={}", folder.display())];
        let major = self.version.as_ref().and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        if major.is_some_and(|major| major >= 5) {
            options.push("--enable-old-settings".to_owned());
        }
        options
    }
}

/// Everything that a program prints.
fn said(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// The version that a program tells: its first word that begins with a digit and has a dot.
fn version(command: &mut Command) -> Option<String> {
    find_version(&said(command)?)
}

/// Version and commit of Sixfold: its first line without the name, `0.1.0 (commit 0123456789ab)`.
fn own_version(text: &str) -> Option<String> {
    text.lines().next()?.strip_prefix("sixfold ").map(str::to_owned)
}

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

/// A running device. Dropping it ends the device.
pub struct Running {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Check of its answers.
    pub check: Check,
    /// Its process.
    pub process: Process,
}

impl Running {
    /// Waits until the device listens, and gives its sockets the receive buffer of every device. One that does not listen in time
    /// gives no right answer either, which the caller finds.
    fn equalize_receive_buffer(&mut self) {
        let (pids, port, begun) = ([self.process.id()], self.address.port(), Instant::now());
        while device_sockets::listening(&pids, port).is_empty()
            && begun.elapsed() < limits::LISTEN_TIMEOUT
            && !self.process.has_ended()
        {
            std::thread::sleep(limits::LISTEN_POLL);
        }
        // A server with several sockets binds them one after the other.
        std::thread::sleep(limits::LISTEN_POLL);
        device_sockets::equalize(&pids, port);
        let sockets = device_sockets::listening(&pids, port);
        if sockets.iter().any(|found| found.receive_buffer < WANTED) {
            eprintln!(
                "the receive buffer of the device at {} is smaller than that of the others",
                self.address
            );
        }
    }
}

/// The receive buffers of the devices in words. They are equal if this process may set those of other processes; a socket of its own
/// shows it.
pub fn describe_receive_buffers() -> String {
    let probe = || {
        let socket = UdpSocket::bind("[::1]:0")?;
        let (own, port) = ([std::process::id()], socket.local_addr()?.port());
        device_sockets::equalize(&own, port);
        Ok(device_sockets::listening(&own, port).iter().any(|found| found.receive_buffer >= WANTED))
    };
    match probe() {
        Ok::<bool, io::Error>(true) => {
            format!("The sockets of each device have a receive buffer of {} MiB.", (WANTED / 2) >> 20)
        }
        _ => "The receive buffers of the devices are as each server makes them, because this process may not raise them (run it \
              as root)."
            .to_owned(),
    }
}

/// A port of the loopback interface that is free now.
///
/// # Errors
///
/// The loopback interface has no IPv6, or no port is free.
pub fn free_address() -> io::Result<SocketAddr> {
    UdpSocket::bind("[::1]:0")?.local_addr()
}

/// Finds an installed program.
pub fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
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

    #[test]
    fn a_server_that_a_root_lacks_is_named_with_the_way_to_get_it() {
        let error = Device::find_in(Kind::Bind, Path::new("/nowhere")).unwrap().unwrap_err();
        assert!(error.contains("/nowhere") && error.contains("--include=bind9 trixie"), "{error}");
        assert!(Device::find_in(Kind::Sixfold, Path::new("/nowhere")).is_none());
    }
}
