//! Devices of an agent, by number: those that it started and those that it attached to.

use super::limits;
use super::protocol::{Attached, Start, Started, Target};
use crate::device::{self, DeviceError, Settings};
use crate::process::supervisor::LaunchRequest;
use crate::process::{DeviceLog, Process, ProcessError, tree};
use crate::usage::Usage;
use servers::WorkingFolder;
use servers::process::free_address;
use servers::program::is_confined_by_apparmor;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// All devices of an agent. Dropping it ends those that the agent started.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: BTreeMap<u32, Device>,
    /// Number of the next device.
    next: u32,
}

#[derive(Debug)]
enum Device {
    /// The agent started it: process and program.
    Started(Box<Process>, String),
    /// It ran already: its first processes.
    Attached(Vec<u32>),
}

impl Devices {
    /// Starts a device.
    ///
    /// # Errors
    ///
    /// There are as many devices as may be, the address does not belong to this host, no port is free, the recipe cannot be carried out
    /// on this host, or the process cannot be started.
    pub(super) fn start(&mut self, order: Start) -> Result<Started, DevicesError> {
        self.check_limit()?;
        let mut settings = order.settings;
        settings.listen = choose_port(settings.listen)?;
        let folder = WorkingFolder::new().map_err(ProcessError::Folder)?;
        let mut plan = device::plan(&order.recipe, &settings, folder.path())?;
        plan.environment.extend(order.environment);
        let request =
            LaunchRequest { folder: folder.path().to_owned(), plan: plan.clone(), cores: order.cores };
        let process = Process::start(request, folder)?;
        let pid = process.pid();
        let program = plan.command.first().cloned().unwrap_or_default();
        let Settings { listen, .. } = settings;
        let device = self.register(Device::Started(Box::new(process), program));
        let mut files = plan.files;
        files.remove(servers::KEY_FILE);
        Ok(Started { device, pid, listen, version: plan.version, command: plan.command, files })
    }

    /// Attaches to a device that runs already.
    ///
    /// # Errors
    ///
    /// There are as many devices as may be, or there is no such process.
    pub(super) fn attach(&mut self, target: &Target) -> Result<Attached, DevicesError> {
        self.check_limit()?;
        let (pids, what) = match target {
            Target::Pid { pid } => (vec![*pid], format!("number {pid}")),
            Target::Name { name } => (tree::find_by_name(name), format!("name \"{name}\"")),
        };
        let running = Usage::read(&pids).processes;
        let pids: Vec<u32> = running.iter().map(|process| process.pid).collect();
        let Some(first) = pids.first() else { return Err(DevicesError::NoProcess(what)) };
        let command = tree::command_line(*first);
        let device = self.register(Device::Attached(pids.clone()));
        Ok(Attached { device, pids, command })
    }

    /// Reads the resources that a device has used.
    ///
    /// # Errors
    ///
    /// `DevicesError::UnknownNumber`: there is no device of this number.
    pub(super) fn usage(&mut self, number: u32) -> Result<Usage, DevicesError> {
        Ok(Usage::read(&self.members(number)?))
    }

    /// The processes of a device.
    ///
    /// # Errors
    ///
    /// As `Devices::usage`.
    pub(super) fn members(&mut self, number: u32) -> Result<Vec<u32>, DevicesError> {
        Ok(match self.find(number)? {
            Device::Started(process, _) => process.members(),
            Device::Attached(pids) => tree::members(pids, None),
        })
    }

    /// Reads the last output of a device.
    ///
    /// # Errors
    ///
    /// As `Devices::usage`, or the supervisor of the device has failed.
    pub(super) fn log(&mut self, number: u32) -> Result<DeviceLog, DevicesError> {
        match self.find(number)? {
            Device::Started(process, program) => {
                let mut log = process.log()?;
                if log.ended.is_some() && is_confined_by_apparmor(program) {
                    log.text.push_str(&format!(
                        "\nAppArmor confines {program}, so it may not read its files in the temporary folder: \
                         `aa-complain {program}`"
                    ));
                }
                Ok(log)
            }
            Device::Attached(pids) => {
                let is_gone = Usage::read(pids).processes.is_empty();
                Ok(DeviceLog { ended: is_gone.then(|| "it has ended".to_owned()), text: String::new() })
            }
        }
    }

    /// Ends a device that was started, or detaches from one that ran already.
    ///
    /// # Errors
    ///
    /// As `Devices::usage`, or the supervisor of the device has failed. The number is free then, too.
    pub(super) fn stop(&mut self, number: u32, grace: Duration) -> Result<DeviceLog, DevicesError> {
        match self.devices.remove(&number) {
            Some(Device::Started(process, _)) => Ok(process.stop(grace)?),
            Some(Device::Attached(_)) => Ok(DeviceLog::default()),
            None => Err(DevicesError::UnknownNumber(number)),
        }
    }

    fn register(&mut self, device: Device) -> u32 {
        let number = self.next;
        self.next += 1;
        self.devices.insert(number, device);
        number
    }

    fn find(&mut self, number: u32) -> Result<&mut Device, DevicesError> {
        self.devices.get_mut(&number).ok_or(DevicesError::UnknownNumber(number))
    }

    fn check_limit(&self) -> Result<(), DevicesError> {
        if self.devices.len() < limits::DEVICES { Ok(()) } else { Err(DevicesError::TooMany) }
    }
}

/// Chooses a port that is free now for both UDP and TCP. An address that has a port stays as it is.
fn choose_port(address: SocketAddr) -> Result<SocketAddr, DevicesError> {
    match address.port() {
        0 => free_address(address.ip()).map_err(|error| DevicesError::Address(address.ip(), error)),
        _ => Ok(address),
    }
}

/// Reasons why an order about a device could not be carried out.
#[derive(Debug)]
pub(super) enum DevicesError {
    /// The agent has no device of this number.
    UnknownNumber(u32),
    /// The agent has as many devices as it may have.
    TooMany,
    /// There is no such process.
    NoProcess(String),
    /// The address does not belong to this host.
    Address(IpAddr, io::Error),
    /// The files or the command line of the device cannot be made.
    Device(DeviceError),
    /// The device's process cannot be started, or does not respond.
    Process(ProcessError),
}

impl fmt::Display for DevicesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DevicesError::UnknownNumber(number) => write!(f, "this agent has no device number {number}"),
            DevicesError::TooMany => {
                write!(f, "this agent has {} devices already; stop one", limits::DEVICES)
            }
            DevicesError::NoProcess(what) => {
                write!(
                    f,
                    "no process with the {what} runs on this host; check `ps -e`, and the host in the command"
                )
            }
            DevicesError::Address(address, error) => {
                write!(f, "no port of {address} can be bound: {error}; give an address of this host")
            }
            DevicesError::Device(error) => error.fmt(f),
            DevicesError::Process(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DevicesError {}

impl From<DeviceError> for DevicesError {
    fn from(error: DeviceError) -> DevicesError {
        DevicesError::Device(error)
    }
}

impl From<ProcessError> for DevicesError {
    fn from(error: ProcessError) -> DevicesError {
        DevicesError::Process(error)
    }
}
