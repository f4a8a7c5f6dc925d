//! Start of the datapath by frames: for each interface the program with its maps, its link, and one socket for each queue. All of it
//! needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW, and happens before the process gives up its privileges.

use crate::af_xdp::interface::{Interface, attached_program, local_addresses};
use crate::af_xdp::limits::{XDP_PLACES, XDP_PROCESSORS, XDP_QUEUES};
use crate::af_xdp::packet_cache::PacketCache;
use crate::af_xdp::packet_cache_writer::PacketCacheWriter;
use crate::af_xdp::program::{Mode, Place, Program, Refusal, SharedArrays};
use crate::af_xdp::route::Origins;
use crate::af_xdp::socket::{self, Receiver, Sender};
use kernel::remedy::remedy;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The queues of one worker.
#[derive(Default)]
pub struct Queues {
    /// Number of the interface in the order of the configuration, and the receiving half of the socket.
    pub receivers: Vec<(u8, Receiver)>,
    /// Number of the interface, and the sending half of the socket.
    pub senders: Vec<(u8, Sender)>,
    /// Facts that answers need.
    pub origins: Arc<Origins>,
    /// The worker's part of the packet cache of all programs.
    pub packet_cache: Option<PacketCacheWriter>,
    /// The links of the programs. Each ends with the last worker.
    _links: Vec<Arc<OwnedFd>>,
}

/// An interface to which the program is attached.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Name of the interface.
    pub interface: String,
    /// The level at which the program runs.
    pub mode: Mode,
    /// True for a virtual Ethernet pair, which gets generic mode.
    pub is_veth: bool,
    /// Receive queues, each with a socket.
    pub queues: u32,
    /// Queues whose frames the card itself reads and writes; the kernel copies those of the others.
    pub zero_copy: u32,
    /// Addresses with their ports whose queries the program takes.
    pub places: usize,
}

/// Attaches the program to the interfaces of these names, at most 255, for the listening addresses. The result has the queues of each
/// worker: queue n belongs to worker n modulo `workers`.
///
/// # Errors
///
/// [`AttachError`] has the interface and the cause: there is no such interface, it is not Ethernet, it has a program or too many
/// queues, the machine has too many addresses, the process lacks a capability, or the kernel refuses a step. Nothing stays attached.
pub fn open(
    names: &[String],
    listen: &[SocketAddr],
    workers: usize,
) -> Result<(Vec<Queues>, Vec<Attached>), AttachError> {
    let mut queues: Vec<Queues> = (0..workers).map(|_| Queues::default()).collect();
    let mut origins = Origins { ports: listen.iter().map(SocketAddr::port).collect(), ..Origins::default() };
    let failed = |cause| AttachError { interface: names.join(", "), cause };
    let arrays = PacketCache::arrays(processors()).map_err(|error| {
        failed(match error.raw_os_error() {
            Some(libc::EPERM) => Cause::Permission("bpf"),
            _ => Cause::PacketCache(error),
        })
    })?;
    let seed = getrandom::u64().unwrap_or_default();
    let packet_cache =
        Arc::new(PacketCache::new(&arrays, seed).map_err(|error| failed(Cause::PacketCache(error)))?);
    let mut report = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let interface = find(name)?;
        report.push(attach(name, &interface, number as u8, listen, &arrays, &mut queues)?);
        origins.interfaces.push((interface.ethernet, interface.index));
        origins.mtus.push(interface.mtu);
    }
    let origins = Arc::new(origins);
    for (worker, one) in queues.iter_mut().enumerate() {
        one.packet_cache = Some(PacketCacheWriter::new(Arc::clone(&packet_cache), worker));
        one.origins = Arc::clone(&origins);
    }
    Ok((queues, report))
}

/// Looks up an interface that the program may be attached to.
fn find(name: &str) -> Result<Interface, AttachError> {
    let failed = |cause| AttachError { interface: name.to_owned(), cause };
    let interface = match Interface::find(name) {
        Ok(Some(interface)) => interface,
        Ok(None) => return Err(failed(Cause::NotEthernet)),
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Err(failed(Cause::NoInterface)),
        Err(error) => return Err(failed(Cause::Unknown(error))),
    };
    match attached_program(interface.index).map_err(|error| failed(Cause::Unknown(error)))? {
        Some(id) => Err(failed(Cause::Occupied(Some(id)))),
        None if interface.queues > XDP_QUEUES => Err(failed(Cause::TooManyQueues(interface.queues))),
        None => Ok(interface),
    }
}

/// Attaches the program to one interface, and opens a socket for each queue.
fn attach(
    name: &str,
    interface: &Interface,
    number: u8,
    listen: &[SocketAddr],
    arrays: &SharedArrays,
    workers: &mut [Queues],
) -> Result<Attached, AttachError> {
    let failed = |cause| AttachError { interface: name.to_owned(), cause };
    let places = places(interface, listen).map_err(|error| failed(Cause::Unknown(error)))?;
    if places.len() > XDP_PLACES {
        return Err(failed(Cause::TooManyAddresses(places.len())));
    }
    let program = Program::load(interface.queues, &places, arrays).map_err(|refusal| {
        failed(match refusal.error.raw_os_error() {
            Some(libc::EPERM) => Cause::Permission("bpf"),
            _ => Cause::Program(refusal),
        })
    })?;
    // In the driver of a virtual pair, the program's own answers reach the other end only if that has a program, too.
    let (link, mode) = program.attach(interface.index, !interface.is_veth).map_err(|error| {
        failed(match error.raw_os_error() {
            Some(libc::EPERM) => Cause::Permission("the attachment"),
            // Somebody was faster.
            Some(libc::EBUSY | libc::EEXIST) => {
                Cause::Occupied(attached_program(interface.index).ok().flatten())
            }
            _ => Cause::Attach(error),
        })
    })?;
    let mut zero_copy = 0;
    for queue in 0..interface.queues {
        let opened =
            socket::open(interface.index, queue, mode == Mode::Generic).map_err(|(step, error)| {
                failed(match error.raw_os_error() {
                    Some(libc::EPERM) => Cause::Permission("AF_XDP"),
                    _ => Cause::Queue { queue, step, error },
                })
            })?;
        let step = "the map of sockets";
        program
            .give_queue(queue, opened.receiver.socket())
            .map_err(|error| failed(Cause::Queue { queue, step, error }))?;
        zero_copy += u32::from(opened.zero_copy);
        let owner = queue as usize % workers.len();
        let worker = &mut workers[owner];
        worker.receivers.push((number, opened.receiver));
        worker.senders.push((number, opened.sender));
    }
    let link = Arc::new(link);
    workers.iter_mut().for_each(|worker| worker._links.push(Arc::clone(&link)));
    let queues = interface.queues;
    let is_veth = interface.is_veth;
    Ok(Attached { interface: name.to_owned(), mode, is_veth, queues, zero_copy, places: places.len() })
}

/// Number of processors that the machine may have: the numbers of processors are below it.
fn processors() -> u32 {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = possible.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u32>().ok());
    last.map_or(XDP_PROCESSORS, |last| last.saturating_add(1))
}

/// The places at which queries come over an interface.
fn places(interface: &Interface, listen: &[SocketAddr]) -> io::Result<Vec<Place>> {
    let mut places = Vec::new();
    for &address in listen {
        for local in local_addresses(address, interface.index)? {
            let place = Place { address: local, ethernet: interface.ethernet, port: address.port() };
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    Ok(places)
}

/// The reason why the program cannot be attached to an interface. Its text contains the remedy.
#[derive(Debug)]
pub struct AttachError {
    interface: String,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    /// There is no such interface.
    NoInterface,
    /// It is a loopback interface, a tunnel or another one whose packets have no Ethernet header.
    NotEthernet,
    /// Its properties or addresses cannot be read.
    Unknown(io::Error),
    /// It has an XDP program already, of this ID if the kernel tells.
    Occupied(Option<u32>),
    /// It has more queues than there may be sockets.
    TooManyQueues(u32),
    /// This machine has more addresses than the program can know.
    TooManyAddresses(usize),
    /// The process may not do this.
    Permission(&'static str),
    /// The memory that the program shares with the workers cannot be had.
    PacketCache(io::Error),
    /// The kernel does not load the program.
    Program(Refusal),
    /// The kernel does not attach the program.
    Attach(io::Error),
    /// The poll of a worker does not take a socket.
    Poll(io::Error),
    /// A queue has no socket.
    Queue { queue: u32, step: &'static str, error: io::Error },
}

impl AttachError {
    /// The error of a poll that does not take the sockets.
    pub fn of_poll(error: io::Error) -> AttachError {
        AttachError { interface: "the interfaces".to_owned(), cause: Cause::Poll(error) }
    }
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.interface;
        write!(f, "cannot use XDP on {name}: ")?;
        match &self.cause {
            Cause::NoInterface => {
                f.write_str("there is no such interface; `ip link` lists them; correct `server.interfaces`")
            }
            Cause::NotEthernet => {
                f.write_str("its packets have no Ethernet header; remove it from `server.interfaces`, the sockets serve it")
            }
            Cause::Unknown(error) => {
                write!(f, "its properties cannot be read: {error}; {}, or set {SOCKETS}", remedy(error))
            }
            Cause::Poll(error) => write!(f, "epoll: {error}; {}", remedy(error)),
            Cause::Occupied(id) => {
                let id = id.map(|id| format!(" (ID {id})")).unwrap_or_default();
                write!(
                    f,
                    "it has another XDP program{id}; `bpftool net show dev {name}` names it; stop its owner, or detach it with `ip link \
                     set dev {name} xdp off`, or set {SOCKETS}"
                )
            }
            Cause::TooManyQueues(queues) => write!(
                f,
                "it has {queues} receive queues, and at most {XDP_QUEUES} can be served; set fewer with `ethtool -L {name}`"
            ),
            Cause::TooManyAddresses(places) => write!(
                f,
                "there are {places} addresses to listen on, and the program can know {XDP_PLACES}; name addresses in `server.listen`"
            ),
            Cause::Permission(what) => write!(
                f,
                "permission denied ({what}); start as root, or with the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW"
            ),
            Cause::PacketCache(error) => write!(
                f,
                "there is no memory for the packet cache: {error}; raise the limit of locked memory (LimitMEMLOCK=infinity in the unit); {}",
                kernel_remedy(&release())
            ),
            Cause::Program(Refusal { error, log }) => {
                write!(f, "the kernel does not load the program: {error}; ")?;
                if !log.is_empty() {
                    write!(f, "the verifier says: {log}; ")?;
                }
                f.write_str(&kernel_remedy(&release()))
            }
            Cause::Attach(error) => write!(
                f,
                "the kernel does not attach the program, neither in the driver nor in generic mode: {error}; {}",
                kernel_remedy(&release())
            ),
            Cause::Queue { queue, step, error } => {
                write!(f, "queue {queue} has no socket: {step}: {error}; ")?;
                f.write_str(match error.raw_os_error() {
                    Some(libc::ENOBUFS | libc::ENOMEM) => {
                        "raise the limit of locked memory (LimitMEMLOCK=infinity in the unit), 6 MiB are needed for each queue"
                    }
                    Some(libc::EBUSY) => "another program has an AF_XDP socket for the queue: stop it",
                    _ => "the driver may have no AF_XDP: set `server.datapath = \"sockets\"`",
                })
            }
        }
    }
}

/// The setting without XDP.
const SOCKETS: &str = "`server.datapath = \"sockets\"`";

/// Release of the running kernel, like `6.1.0-38-amd64`; empty if it cannot be read.
fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// The remedy for a kernel of this release that refuses the program: links of XDP programs exist since Linux 5.9.
fn kernel_remedy(release: &str) -> String {
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < (5, 9) => {
            format!("Linux 5.9 or later is needed, and this is {release}: boot a newer one, or set {SOCKETS}")
        }
        (Some(_), Some(_)) => format!(
            "Linux {release} has all that is needed, but a policy may forbid it (`journalctl -k`, lockdown, \
             kernel.unprivileged_bpf_disabled), or this driver lacks it: set {SOCKETS}"
        ),
        _ => format!("Linux 5.9 or later is needed; without it set {SOCKETS}"),
    }
}

impl std::error::Error for AttachError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Unknown(error)
            | Cause::Poll(error)
            | Cause::PacketCache(error)
            | Cause::Attach(error)
            | Cause::Queue { error, .. } => Some(error),
            Cause::Program(refusal) => Some(&refusal.error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_called_too_old_only_if_it_is() {
        for (release, part) in [
            ("5.8.0-rc1", "5.9 or later is needed, and this is 5.8.0-rc1"),
            ("4.19.0-27-amd64", "and this is 4.19.0"),
            ("5.9.0", "has all that is needed"),
            ("6.1.0-38-amd64", "has all that is needed"),
            ("", "5.9 or later is needed; without it"),
        ] {
            assert!(kernel_remedy(release).contains(part), "{release}: {}", kernel_remedy(release));
        }
    }
}
