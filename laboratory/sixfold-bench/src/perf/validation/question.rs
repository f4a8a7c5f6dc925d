//! Single questions to a device, while the tester answers its upstream questions.

use crate::perf::limits;
use crate::perf::names::PREFIX;
use crate::perf::tester::Tester;
use crate::perf::validation::replies::BOGUS;
use crate::perf::validation::zones::name_in;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use wire::{Rcode, Type, header};

/// AD in the second octet of the flags (RFC 4035 section 3.2.3).
const AD: u8 = 0x20;

/// OPT record with DO and without options, for replies of 1,232 octets.
const OPT: [u8; 11] = [0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0];

/// Client of one device.
pub struct Asker {
    socket: UdpSocket,
    id: u16,
}

/// Reply, and the time from the question to it.
pub struct Reply {
    /// The message.
    pub message: Vec<u8>,
    /// Time that it took.
    pub after: Duration,
}

impl Asker {
    /// Client of the device that listens there.
    ///
    /// # Errors
    ///
    /// A socket cannot be made.
    pub fn new(server: SocketAddr) -> io::Result<Asker> {
        let socket = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(Asker { socket, id: 0 })
    }

    /// Asks a question, with an OPT record with DO if `dnssec_ok`, and waits for the reply.
    ///
    /// # Errors
    ///
    /// The question cannot be sent, or there is no reply in [`limits::READY_TIMEOUT`].
    pub fn ask(
        &mut self,
        tester: &mut Tester,
        (name, rtype): (&[u8], Type),
        dnssec_ok: bool,
    ) -> io::Result<Reply> {
        self.id = self.id.wrapping_add(1);
        let mut query = self.id.to_be_bytes().to_vec();
        query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(dnssec_ok)]);
        query.extend(name);
        query.extend(rtype.0.to_be_bytes());
        query.extend([0, 1]);
        if dnssec_ok {
            query.extend(OPT);
        }
        self.socket.send(&query)?;
        let (sent, mut buffer) = (Instant::now(), [0; 4096]);
        while sent.elapsed() < limits::READY_TIMEOUT {
            tester.poll();
            match self.socket.recv(&mut buffer) {
                Ok(length) if length >= header::HEADER && buffer[..2] == query[..2] => {
                    return Ok(Reply { message: buffer[..length].to_vec(), after: sent.elapsed() });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("a question has no reply"))
    }
}

impl Reply {
    /// True for NOERROR with one record, the synthesized one for this address.
    pub fn is_synthesized(&self, address: Ipv4Addr) -> bool {
        let expected = u128::from(PREFIX) | u128::from(u32::from(address));
        self.rcode() == Rcode::NOERROR
            && self.message[6..8] == [0, 1]
            && self.message.ends_with(&expected.to_be_bytes())
    }

    fn rcode(&self) -> Rcode {
        header::flags(&self.message).rcode()
    }
}

/// Checks that a device validates: a signed name has AD, and one with a wrong signature is SERVFAIL (RFC 4035 section 5.5).
///
/// # Errors
///
/// It does not, or gives no reply.
pub fn check_validation(tester: &mut Tester, server: SocketAddr) -> io::Result<()> {
    let mut asker = Asker::new(server)?;
    let begun = Instant::now();
    loop {
        let good = asker.ask(tester, (&name_in(0, "a"), Type::A), true)?;
        if good.rcode() == Rcode::NOERROR && good.message[3] & AD != 0 {
            break;
        }
        // Where the machine is busy, the authority may be silent for too long, and a failure may be kept for seconds.
        if begun.elapsed() > limits::READY_TIMEOUT {
            return Err(io::Error::other(format!("no AD for a signed name: {:02x?}", good.message)));
        }
        std::thread::sleep(limits::READY_INTERVAL);
    }
    let bogus = asker.ask(tester, (&name_in(0, BOGUS), Type::A), true)?;
    if bogus.rcode() != Rcode::SERVFAIL {
        return Err(io::Error::other(format!("a wrong signature is not refused: {:02x?}", bogus.message)));
    }
    Ok(())
}
