//! What passes through a gateway to an IPv4 address behind it: TCP, UDP, ICMP, packets of some sizes, fragments.

use super::question::{Bits, Question};
use crate::facts::{Looked, Passage, Path};
use crate::limits::{FRAGMENTED, LARGEST_PACKET, READS, TRIES};
use kernel::syscalls::set_option;
use pref64::Pref64;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, SocketAddrV4, SocketAddrV6, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::scope;
use std::time::{Duration, Instant};

/// Octets of the headers of IPv6 and of an echo request (RFC 8200 section 3, RFC 4443 section 4.1).
const HEADERS: u32 = 40 + 8;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// Smallest MTU of a link with IPv6 (RFC 8200 section 5).
const SMALLEST_MTU: u32 = 1280;

/// Octets of a packet with a small echo request.
const SMALL: u32 = HEADERS + 16;

/// A way to try.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Prefix of the gateway.
    pub prefix: Pref64,
    /// The address behind it, with the port for TCP and UDP.
    pub target: SocketAddrV4,
    /// MTU of the link, in octets.
    pub mtu: u32,
    /// True if the target is known to take datagrams in fragments.
    pub takes_fragments: bool,
    /// Wait for each answer.
    pub timeout: Duration,
}

impl Way {
    /// Tries everything.
    pub fn look(&self) -> Path {
        let (tcp, udp, fragments, (icmp, smallest_mtu, link_mtu)) = scope(|scope| {
            let tcp = scope.spawn(|| self.tcp());
            let udp = scope.spawn(|| self.udp(None));
            let fragments = scope.spawn(|| self.fragments());
            let sizes = self.sizes();
            let lost = Passage::Lost;
            let fragments =
                fragments.join().unwrap_or_else(|_| Looked::Not("a fault of this program".to_owned()));
            (tcp.join().unwrap_or(lost), udp.join().unwrap_or(lost), fragments, sizes)
        });
        Path { prefix: self.prefix, target: self.target, tcp, udp, icmp, smallest_mtu, link_mtu, fragments }
    }

    fn address(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.prefix.embed(self.target.ip().octets()))
    }

    fn socket_address(&self) -> SocketAddrV6 {
        SocketAddrV6::new(self.address(), self.target.port(), 0, 0)
    }

    fn tcp(&self) -> Passage {
        match TcpStream::connect_timeout(&self.socket_address().into(), self.timeout * TRIES as u32) {
            Ok(_) => Passage::Passed,
            Err(error) => of_error(&error),
        }
    }

    /// A question of DNS, and whatever comes back: an answer, or the error that nobody listens. `size`: in a datagram of so many octets,
    /// which goes in fragments.
    fn udp(&self, size: Option<usize>) -> Passage {
        let question = Question::new(b"\0", wire::Type::NS, Bits::default());
        let question = if let Some(size) = size { question.padded(size) } else { question };
        let tried = || -> io::Result<Passage> {
            let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
            // Every ICMP error about our datagrams is an error of the socket.
            set_option(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
            if size.is_some() {
                // Fragments of at most this size, whatever the link takes.
                set_option(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU, SMALLEST_MTU as i32)?;
            }
            socket.connect(self.socket_address())?;
            socket.set_read_timeout(Some(self.timeout))?;
            let message = question.message()?;
            for _ in 0..TRIES {
                socket.send(&message)?;
                match socket.recv(&mut [0; 2048]) {
                    Ok(_) => return Ok(Passage::Passed),
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(Passage::Lost)
        };
        tried().unwrap_or_else(|error| of_error(&error))
    }

    fn fragments(&self) -> Looked<Passage> {
        match self.takes_fragments {
            true => Looked::Seen(self.udp(Some(FRAGMENTED))),
            false => Looked::Not(
                "servers of others may drop long questions; name a target of your own with --target"
                    .to_owned(),
            ),
        }
    }

    /// Echo requests: a small one, one in a packet of 1,280 octets, and one in a packet of the MTU of the link.
    fn sizes(&self) -> (Looked<Passage>, Looked<Passage>, Looked<Passage>) {
        let echo = match Echo::open(self.address(), self.timeout) {
            Ok(echo) => echo,
            Err(error) => {
                let why = match error.kind() {
                    ErrorKind::PermissionDenied => {
                        "echo requests need root, or a group in the sysctl net.ipv4.ping_group_range"
                            .to_owned()
                    }
                    _ => {
                        let dead = Looked::Seen(of_error(&error));
                        return (dead.clone(), dead.clone(), dead);
                    }
                };
                return (Looked::Not(why.clone()), Looked::Not(why.clone()), Looked::Not(why));
            }
        };
        let small = echo.pass(SMALL);
        if !small.has_passed() {
            let why = || Looked::Not("small echo requests do not pass either".to_owned());
            return (Looked::Seen(small), why(), why());
        }
        let smallest = echo.pass(SMALLEST_MTU);
        let large = self.mtu.min(LARGEST_PACKET);
        let largest = if large > SMALLEST_MTU { echo.pass(large) } else { smallest };
        (Looked::Seen(small), Looked::Seen(smallest), Looked::Seen(largest))
    }
}

/// Meaning of an error of the system.
fn of_error(error: &io::Error) -> Passage {
    match error.kind() {
        // The target itself refuses, or has closed the connection at once.
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Passage::Passed,
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Passage::Lost,
        _ if error.raw_os_error() == Some(libc::EMSGSIZE) => Passage::TooBig,
        _ => Passage::Unreachable,
    }
}

/// Echo requests to one address.
struct Echo {
    socket: UdpSocket,
    timeout: Duration,
}

impl Echo {
    /// Opens an unprivileged socket, or else a raw one.
    fn open(address: Ipv6Addr, timeout: Duration) -> io::Result<Echo> {
        let open = |kind| Socket::new(Domain::IPV6, kind, Some(Protocol::ICMPV6));
        let socket = open(Type::DGRAM).or_else(|_| open(Type::RAW))?;
        let option = |name| set_option(socket.as_raw_fd(), libc::IPPROTO_IPV6, name, 1);
        option(libc::IPV6_RECVERR)?;
        // The host itself makes no fragments of a packet that is too large.
        option(libc::IPV6_DONTFRAG)?;
        socket.connect(&SockAddr::from(SocketAddrV6::new(address, 0, 0, 0)))?;
        // `std` has no type for sockets of ICMP. That of UDP serves: it sends and receives in the same way.
        Ok(Echo { socket: UdpSocket::from(OwnedFd::from(socket)), timeout })
    }

    /// Sends a request in a packet of so many octets, up to [`TRIES`] times.
    fn pass(&self, octets: u32) -> Passage {
        let tried = || -> io::Result<Passage> {
            let mut message = vec![0; octets as usize - 40];
            message[0] = ECHO_REQUEST;
            getrandom::fill(&mut message[4..16]).map_err(io::Error::other)?;
            for _ in 0..TRIES {
                self.socket.send(&message)?;
                if self.has_reply(&message[8..16])? {
                    return Ok(Passage::Passed);
                }
            }
            Ok(Passage::Lost)
        };
        tried().unwrap_or_else(|error| of_error(&error))
    }

    /// Waits for the reply with this data. The number of octets does not matter: some hosts shorten what they send back.
    fn has_reply(&self, data: &[u8]) -> io::Result<bool> {
        let end = Instant::now() + self.timeout;
        let mut buffer = vec![0; LARGEST_PACKET as usize];
        for _ in 0..READS {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.socket.set_read_timeout(Some(left))?;
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    let reply = &buffer[..length];
                    if reply.first() == Some(&ECHO_REPLY) && reply.get(8..16) == Some(data) {
                        return Ok(true);
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The translator and the host behind it are addresses of the loopback interface, in a namespace of its own.
    const SCRIPT: &str = "ip link set lo up; ip -6 addr add 2001:db8:64::c633:6435/128 dev lo; ip -6 addr add \
                          2001:db8:64::c633:6450/128 dev lo; exec \"$@\"";

    fn way(target: &str, port: u16) -> Way {
        Way {
            prefix: "2001:db8:64::/96".parse().unwrap(),
            target: SocketAddrV4::new(target.parse().unwrap(), port),
            mtu: 1500,
            takes_fragments: true,
            timeout: Duration::from_millis(300),
        }
    }

    #[test]
    fn everything_passes_to_a_host_that_answers_or_refuses() {
        let test = "gather::path::tests::everything_passes_to_a_host_that_answers_or_refuses";
        if kit::namespace::is_played_in(SCRIPT, test) {
            return;
        }
        let passed = Looked::Seen(Passage::Passed);
        // Nobody listens: a reset and an ICMP error.
        let path = way("198.51.100.53", 53).look();
        assert_eq!((path.tcp, path.udp), (Passage::Passed, Passage::Passed));
        assert_eq!((&path.icmp, &path.smallest_mtu, &path.link_mtu), (&passed, &passed, &passed));
        assert_eq!(path.fragments, passed);
        // No such address, and no route.
        let path = way("198.51.100.99", 53).look();
        assert_eq!((path.tcp, path.udp), (Passage::Unreachable, Passage::Unreachable));
        assert!(!path.icmp.seen().unwrap().has_passed());
    }
}
