//! Sockets of the probes: TCP connections that are tried, and one socket for all ICMP echo requests; and that of router solicitations.

use gateways::Failure;
use kernel::router_solicitation;
use kernel::syscalls::set_option;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recvfrom};
use socket2::{Domain, Protocol, SockAddr, SockFilter, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Types of ICMPv6 messages (RFC 4443 section 4).
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// Octets of an echo message: type, code, checksum, identifier, sequence number, and our data.
const ECHO: usize = 16;

/// Opens a socket for router solicitations. Nothing arrives there: the kernel tells what routers announce.
///
/// # Errors
///
/// As [`router_solicitation::open`]. The sandbox allows no raw sockets, so this is for the start.
pub fn open_solicitations() -> io::Result<Socket> {
    let socket = router_solicitation::open()?;
    socket.attach_filter(&[SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0)])?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A TCP connection that is tried.
pub struct Connection(Socket);

/// Start or outcome of a probe that is no success.
pub enum Fault {
    /// The probe has failed.
    Failed(Failure),
    /// This machine could not carry it out, which says nothing about the gateway.
    Local(io::Error),
}

impl Fault {
    /// The meaning of an error of connect(2) or sendto(2).
    fn of(error: io::Error) -> Fault {
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Fault::Failed(Failure::Reset),
            ErrorKind::TimedOut => Fault::Failed(Failure::TimedOut),
            ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::AddrNotAvailable => Fault::Failed(Failure::Unreachable),
            _ => match error.raw_os_error() {
                // A prohibition by an ICMP error or by a packet filter.
                Some(libc::EACCES | libc::EPERM | libc::EPROTO) => Fault::Failed(Failure::Unreachable),
                _ => Fault::Local(error),
            },
        }
    }
}

impl Connection {
    /// Starts a connection.
    ///
    /// # Errors
    ///
    /// `Fault::Failed`: there is no route, or a host of this machine refuses. `Fault::Local`: the process may have no more open files.
    pub fn start(address: Ipv6Addr, port: u16) -> Result<Connection, Fault> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::IPV6, kind, Some(Protocol::TCP)).map_err(Fault::Local)?;
        // The end of the probe is a reset: the gateway forgets the connection, and no local port waits (RFC 9293 section 3.10.5).
        socket.set_linger(Some(Duration::ZERO)).map_err(Fault::Local)?;
        match socket.connect(&SockAddr::from(SocketAddrV6::new(address, port, 0, 0))) {
            Ok(()) => Ok(Connection(socket)),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(Connection(socket)),
            Err(error) => Err(Fault::of(error)),
        }
    }

    /// Outcome of a connection whose socket is ready.
    ///
    /// # Errors
    ///
    /// The reason why the connection was not established.
    pub fn outcome(&self) -> Result<(), Fault> {
        match self.0.take_error() {
            Ok(None) => Ok(()),
            Ok(Some(error)) | Err(error) => Err(Fault::of(error)),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Socket for ICMP echo requests.
pub struct Echo {
    socket: UdpSocket,
    /// Identifier of our requests on a raw socket. None: the socket is unprivileged, so the kernel writes an identifier of its own, and
    /// passes on only replies to that.
    identifier: Option<u16>,
    /// Number of the latest request. The first one is random: nobody who does not see the requests can forge an answer to one.
    number: u64,
}

/// Answer to an echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoAnswer {
    /// Address to which the request went.
    to: Ipv6Addr,
    /// Number of the request, as far as `known` has bits: an ICMP error may quote no more than the header of the request (RFC 792), whose
    /// sequence number is the lowest 16 bits.
    number: u64,
    known: u64,
    /// The echo reply, or the failure that an ICMP error tells.
    pub outcome: Result<(), Failure>,
}

impl EchoAnswer {
    /// True if it answers the request to this address with this number.
    pub fn is_to(&self, address: Ipv6Addr, number: u64) -> bool {
        self.to == address && (self.number ^ number) & self.known == 0
    }
}

impl Echo {
    /// Opens an unprivileged socket.
    ///
    /// # Errors
    ///
    /// The error of socket(2). `PermissionDenied`: the system does not allow it to the group of the process (`net.ipv4.ping_group_range`).
    pub fn open() -> io::Result<Echo> {
        Echo::with(Socket::new(Domain::IPV6, Type::DGRAM.nonblocking(), Some(Protocol::ICMPV6))?, None)
    }

    /// Opens an unprivileged socket, else takes the raw one of the predecessor, else opens a raw one. The sandbox allows no raw sockets, so
    /// this is for the start.
    ///
    /// # Errors
    ///
    /// The error of socket(2) for the raw one. `PermissionDenied`: the process lacks CAP_NET_RAW.
    pub fn open_at_start(of_predecessor: Option<OwnedFd>) -> io::Result<Echo> {
        Echo::open().or_else(|_| {
            let raw = || Socket::new(Domain::IPV6, Type::RAW.nonblocking(), Some(Protocol::ICMPV6));
            Echo::raw(of_predecessor.map_or_else(raw, |socket| Ok(Socket::from(socket)))?)
        })
    }

    /// Takes a raw socket, on which only replies to our identifier arrive from now on. Without that filter each ICMPv6 message for this host
    /// would arrive.
    fn raw(socket: Socket) -> io::Result<Echo> {
        let identifier = getrandom::u32()? as u16;
        let (load, end) = (libc::BPF_LD | libc::BPF_ABS, libc::BPF_RET | libc::BPF_K);
        let is_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        // Code, instructions to skip if equal and if not, value. The type is the octet at 0, the identifier those at 4 (RFC 4443 section 4.2).
        let filter = [
            (load | libc::BPF_B, 0, 0, 0),
            (is_equal, 0, 3, ECHO_REPLY.into()),
            (load | libc::BPF_H, 0, 0, 4),
            (is_equal, 0, 1, identifier.into()),
            (end, 0, 0, u32::MAX),
            (end, 0, 0, 0),
        ];
        let filter =
            filter.map(|(code, equal, other, value)| SockFilter::new(code as u16, equal, other, value));
        socket.attach_filter(&filter)?;
        Echo::with(socket, Some(identifier))
    }

    fn with(socket: Socket, identifier: Option<u16>) -> io::Result<Echo> {
        // ICMP errors about the requests come into the queue of errors.
        set_option(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
        Ok(Echo { socket: UdpSocket::from(OwnedFd::from(socket)), identifier, number: getrandom::u64()? })
    }

    /// A further handle of the socket, for the successor of this process: a raw socket, which that process may have no right to open.
    pub fn for_successor(&self) -> Option<OwnedFd> {
        self.identifier?;
        self.socket.try_clone().ok().map(OwnedFd::from)
    }

    /// Sends an echo request. Returns its number.
    ///
    /// # Errors
    ///
    /// As [`Connection::start`].
    pub fn send(&mut self, address: Ipv6Addr) -> Result<u64, Fault> {
        self.number = self.number.wrapping_add(1);
        let mut message = [0; ECHO];
        message[0] = ECHO_REQUEST;
        // The kernel fills in the checksum.
        message[4..6].copy_from_slice(&self.identifier.unwrap_or(0).to_be_bytes());
        message[6..8].copy_from_slice(&(self.number as u16).to_be_bytes());
        message[8..].copy_from_slice(&self.number.to_be_bytes());
        let send = || self.socket.send_to(&message, SocketAddr::from((address, 0)));
        // The first error may be the one that an ICMP error about an earlier request has left at the socket; the queue has that one, too.
        send().or_else(|_| send()).map(|_| self.number).map_err(Fault::of)
    }

    /// Takes the next answer. None: there is none now.
    pub fn receive(&self) -> Option<EchoAnswer> {
        self.next_error().or_else(|| self.next_reply())
    }

    /// Takes the next ICMP error about a request.
    fn next_error(&self) -> Option<EchoAnswer> {
        loop {
            let mut quoted = [0; ECHO];
            let (octets, to) = match recvfrom(&self.socket, &mut quoted[..], RecvFlags::ERRQUEUE) {
                Ok((octets, _, to)) => (octets, to),
                // This queue never waits, but a signal may come.
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let to = to.and_then(|to| SocketAddrV6::try_from(to).ok());
            if let Some(answer) =
                to.and_then(|to| answer_of_error(*to.ip(), &quoted[..octets], self.identifier))
            {
                return Some(answer);
            }
        }
    }

    /// Takes the next echo reply.
    fn next_reply(&self) -> Option<EchoAnswer> {
        loop {
            let mut message = [0; 64];
            let (octets, from) = match self.socket.recv_from(&mut message) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            let IpAddr::V6(from) = from.ip() else { continue };
            if let Some(answer) = answer_of_reply(from, &message[..octets]) {
                return Some(answer);
            }
        }
    }
}

impl AsFd for Echo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The answer that a message from this address is to a request. None: it is no echo reply with the data of one of ours. The kernel compares
/// the identifier.
fn answer_of_reply(from: Ipv6Addr, message: &[u8]) -> Option<EchoAnswer> {
    let (header, data) = message.split_first_chunk::<8>()?;
    let number = u64::from_be_bytes(*data.first_chunk()?);
    let answer = EchoAnswer { to: from, number, known: u64::MAX, outcome: Ok(()) };
    (header[0] == ECHO_REPLY).then_some(answer)
}

/// The answer that an ICMP error is to a request to this address, of which it quotes some octets. None: the request is none of ours.
fn answer_of_error(to: Ipv6Addr, quoted: &[u8], identifier: Option<u16>) -> Option<EchoAnswer> {
    let (header, data) = quoted.split_first_chunk::<8>()?;
    let [ECHO_REQUEST, _, _, _, of_request @ .., high, low] = *header else { return None };
    if identifier.is_some_and(|own| own.to_be_bytes() != of_request) {
        return None;
    }
    let (number, known) = match data.first_chunk() {
        Some(data) => (u64::from_be_bytes(*data), u64::MAX),
        None => (u16::from_be_bytes([high, low]).into(), u16::MAX.into()),
    };
    Some(EchoAnswer { to, number, known, outcome: Err(Failure::Unreachable) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_icmp_error_is_an_answer_to_the_request_that_it_quotes() {
        let to: Ipv6Addr = "64:ff9b::c000:20a".parse().unwrap();
        let number = 0x0102_0304_0506_0708;
        // Type, code, checksum, identifier, sequence number (RFC 4443 section 4.1), our number.
        let request = *b"\x80\0\xab\xcd\x12\x34\x07\x08\x01\x02\x03\x04\x05\x06\x07\x08";
        let whole = answer_of_error(to, &request, Some(0x1234)).unwrap();
        assert_eq!(whole.outcome, Err(Failure::Unreachable));
        assert!(whole.is_to(to, number) && !whole.is_to(to, number ^ 1 << 40));
        assert!(!whole.is_to(Ipv6Addr::LOCALHOST, number));
        // 64 bits of the data of a packet in an IPv4 network (RFC 792).
        let header = answer_of_error(to, &request[..8], None).unwrap();
        assert!(
            header.is_to(to, number) && header.is_to(to, number ^ 1 << 40) && !header.is_to(to, number ^ 1)
        );
        assert_eq!(answer_of_error(to, &request, Some(0x4321)), None, "of another program");
        assert_eq!(answer_of_error(to, &request[..7], None), None);
        assert_eq!(answer_of_error(to, &[0x81; 16], None), None, "an error about a reply");
    }

    #[test]
    fn an_echo_reply_answers_the_request_to_its_sender_whose_data_it_returns() {
        let to: Ipv6Addr = "64:ff9b::c000:20a".parse().unwrap();
        let number = 0x0102_0304_0506_0708;
        // RFC 4443 section 4.2: the data of the request are returned entirely and unmodified.
        let reply = *b"\x81\0\xab\xcd\x12\x34\x07\x08\x01\x02\x03\x04\x05\x06\x07\x08";
        let answer = answer_of_reply(to, &reply).unwrap();
        assert_eq!(answer.outcome, Ok(()));
        assert!(answer.is_to(to, number));
        for bit in 0..u64::BITS {
            assert!(!answer.is_to(to, number ^ 1 << bit), "of another request: bit {bit}");
        }
        let other: Ipv6Addr = "64:ff9b::c000:20b".parse().unwrap();
        assert!(!answer_of_reply(other, &reply).unwrap().is_to(to, number), "from another address");
        assert_eq!(answer_of_reply(to, &reply[..15]), None, "less data than in the request");
        assert_eq!(answer_of_reply(to, &reply[..7]), None);
        let mut request = reply;
        request[0] = ECHO_REQUEST;
        assert_eq!(answer_of_reply(to, &request), None, "a request that comes back");
    }

    /// Own addresses of which the first is probed. The kernel itself does not reply.
    const SCRIPT: &str = "set -e; echo 1 >/proc/sys/net/ipv6/icmp/echo_ignore_all; \
                          echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range; ip link set lo up; \
                          ip address add 2001:db8::1/128 dev lo nodad; \
                          ip address add 2001:db8::2/128 dev lo nodad; exec \"$@\"";

    /// Sends a message from an address to another, both of this host.
    fn send_from(from: &str, to: Ipv6Addr, message: &[u8]) {
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).unwrap();
        let at = |address: Ipv6Addr| SockAddr::from(SocketAddrV6::new(address, 0, 0, 0));
        socket.bind(&at(from.parse().unwrap())).unwrap();
        socket.send_to(message, &at(to)).unwrap();
    }

    /// A liar answers a request wrongly in each way, and then as it should.
    fn lie(mut echo: Echo) {
        let (target, other) = ("2001:db8::1", "2001:db8::2");
        let to: Ipv6Addr = target.parse().unwrap();
        let seen = UdpSocket::from(OwnedFd::from(
            Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).unwrap(),
        ));
        seen.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let number = echo.send(to).map_err(|_| "not sent").unwrap();
        let mut request = [0; ECHO];
        let from = loop {
            let (octets, from) = seen.recv_from(&mut request).expect("the request");
            if (octets, request[0]) == (ECHO, ECHO_REQUEST) {
                break from;
            }
        };
        let IpAddr::V6(prober) = from.ip() else { panic!("{from}") };
        let mut reply = request;
        reply[0] = ECHO_REPLY;
        let changed = |place: usize| {
            let mut reply = reply;
            reply[place] ^= 1;
            reply
        };
        // Another identifier, a request, no data: they are no replies, so the next one comes first.
        for message in [&changed(5)[..], &request, &reply[..8]] {
            send_from(target, prober, message);
        }
        for (from, message) in [(target, changed(8)), (target, changed(15)), (other, reply)] {
            send_from(from, prober, &message);
            let answer = next_answer(&echo);
            let data = u64::from_be_bytes(*message[8..].first_chunk().unwrap());
            assert_eq!((answer.to, answer.number), (from.parse().unwrap(), data));
            assert!(!answer.is_to(to, number), "from {from}: {message:?}");
        }
        send_from(target, prober, &reply);
        let answer = next_answer(&echo);
        assert!(answer.is_to(to, number) && answer.outcome.is_ok());
        assert_eq!(echo.receive(), None);
    }

    /// Waits for the next answer.
    fn next_answer(echo: &Echo) -> EchoAnswer {
        let mut answer = None;
        kit::wait_until("an answer", || {
            answer = echo.receive();
            answer.is_some()
        });
        answer.unwrap()
    }

    #[test]
    fn a_forged_or_foreign_echo_reply_does_not_answer_a_request() {
        let test = "prefixes::sockets::tests::a_forged_or_foreign_echo_reply_does_not_answer_a_request";
        if kit::namespace::is_played_in(SCRIPT, test) {
            return;
        }
        lie(Echo::open().unwrap());
        let raw = Socket::new(Domain::IPV6, Type::RAW.nonblocking(), Some(Protocol::ICMPV6)).unwrap();
        lie(Echo::raw(raw).unwrap());
    }
}
