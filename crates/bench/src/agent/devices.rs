//! The devices of an agent, by number: those that it started and those that it watches.

use super::limits;
use super::protocol::{Attached, Start, Started, Target};
use crate::device::program::is_confined;
use crate::device::{self, DeviceError, Settings};
use crate::process::supervisor::Job;
use crate::process::{DeviceLog, Folder, Process, ProcessError, tree};
use crate::usage::Usage;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

/// Tries to find a port that is free for UDP and TCP.
const PORT_TRIES: usize = 16;

/// All devices of an agent. Those that were started end with this value.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: BTreeMap<u32, Device>,
    /// The number of the next.
    next: u32,
}

#[derive(Debug)]
enum Device {
    /// We started it; its program.
    Ours(Box<Process>, String),
    /// It ran already: its first processes.
    Theirs(Vec<u32>),
}

impl Devices {
    /// Starts a device.
    pub(super) fn start(&mut self, order: Start) -> Result<Started, Trouble> {
        self.check_room()?;
        let mut settings = order.settings;
        settings.listen = free(settings.listen)?;
        let folder = Folder::new()?;
        let plan = device::plan(&order.recipe, &settings, folder.path())?;
        let mut environment = plan.environment;
        environment.extend(order.environment);
        let job = Job {
            folder: folder.path().to_owned(),
            files: plan.files.clone(),
            command: plan.command.clone(),
            environment,
            cores: order.cores,
        };
        let process = Process::start(job, folder)?;
        let pid = process.pid();
        let program = plan.command.first().cloned().unwrap_or_default();
        let Settings { listen, .. } = settings;
        let device = self.keep(Device::Ours(Box::new(process), program));
        Ok(Started { device, pid, listen, version: plan.version, command: plan.command, files: plan.files })
    }

    /// Watches a device that runs.
    pub(super) fn attach(&mut self, target: &Target) -> Result<Attached, Trouble> {
        self.check_room()?;
        let (pids, what) = match target {
            Target::Pid { pid } => (vec![*pid], format!("number {pid}")),
            Target::Name { name } => (tree::named(name), format!("name \"{name}\"")),
        };
        let running = Usage::read(&pids).processes;
        let pids: Vec<u32> = running.iter().map(|process| process.pid).collect();
        let Some(first) = pids.first() else { return Err(Trouble::NoProcess(what)) };
        let command = tree::command(*first);
        let device = self.keep(Device::Theirs(pids.clone()));
        Ok(Attached { device, pids, command })
    }

    /// What a device has used.
    pub(super) fn usage(&mut self, number: u32) -> Result<Usage, Trouble> {
        let pids = match self.find(number)? {
            Device::Ours(process, _) => process.members(),
            Device::Theirs(pids) => tree::members(pids, None),
        };
        Ok(Usage::read(&pids))
    }

    /// What a device said last.
    pub(super) fn log(&mut self, number: u32) -> Result<DeviceLog, Trouble> {
        match self.find(number)? {
            Device::Ours(process, program) => {
                let mut log = process.log()?;
                if log.ended.is_some() && is_confined(program) {
                    log.text.push_str(&format!(
                        "\nAppArmor confines {program}, which then may not read its files in the temporary folder: \
                         `aa-complain {program}`"
                    ));
                }
                Ok(log)
            }
            Device::Theirs(pids) => {
                let is_gone = Usage::read(pids).processes.is_empty();
                Ok(DeviceLog { ended: is_gone.then(|| "it has ended".to_owned()), text: String::new() })
            }
        }
    }

    /// Ends a device, or watches it no longer.
    pub(super) fn stop(&mut self, number: u32, grace: Duration) -> Result<DeviceLog, Trouble> {
        match self.devices.remove(&number) {
            Some(Device::Ours(process, _)) => Ok(process.stop(grace)?),
            Some(Device::Theirs(_)) => Ok(DeviceLog::default()),
            None => Err(Trouble::Unknown(number)),
        }
    }

    fn keep(&mut self, device: Device) -> u32 {
        let number = self.next;
        self.next += 1;
        self.devices.insert(number, device);
        number
    }

    fn find(&mut self, number: u32) -> Result<&mut Device, Trouble> {
        self.devices.get_mut(&number).ok_or(Trouble::Unknown(number))
    }

    fn check_room(&self) -> Result<(), Trouble> {
        if self.devices.len() < limits::DEVICES { Ok(()) } else { Err(Trouble::TooMany) }
    }
}

/// An address with a port that was free a moment ago for both UDP and TCP; one that has a port stays as it is.
fn free(address: SocketAddr) -> Result<SocketAddr, Trouble> {
    if address.port() != 0 {
        return Ok(address);
    }
    let mut tries = 0;
    loop {
        let try_one = || {
            let chosen = UdpSocket::bind(address)?.local_addr()?;
            TcpListener::bind(chosen).map(|_| chosen)
        };
        tries += 1;
        match try_one() {
            Ok(chosen) => return Ok(chosen),
            Err(error) if tries >= PORT_TRIES || error.kind() != io::ErrorKind::AddrInUse => {
                return Err(Trouble::Address(address.ip(), error));
            }
            Err(_) => {}
        }
    }
}

/// Why an order about a device could not be carried out.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It has no such device.
    Unknown(u32),
    /// It has as many as it may have.
    TooMany,
    /// There is no such process.
    NoProcess(String),
    /// The address is not this host's.
    Address(IpAddr, io::Error),
    /// It cannot be described.
    Device(DeviceError),
    /// It cannot be started, or asked.
    Process(ProcessError),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Unknown(number) => write!(f, "there is no device number {number} here"),
            Trouble::TooMany => write!(f, "there are {} devices here already; stop one", limits::DEVICES),
            Trouble::NoProcess(what) => {
                write!(
                    f,
                    "no process with the {what} runs here; look at `ps -e`, and at the host that was asked"
                )
            }
            Trouble::Address(address, error) => {
                write!(f, "no port of {address} can be had: {error}; name an address of this host")
            }
            Trouble::Device(error) => error.fmt(f),
            Trouble::Process(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<DeviceError> for Trouble {
    fn from(error: DeviceError) -> Trouble {
        Trouble::Device(error)
    }
}

impl From<ProcessError> for Trouble {
    fn from(error: ProcessError) -> Trouble {
        Trouble::Process(error)
    }
}
