//! A channel between two processes of one service: messages in JSON, and open descriptors (SCM_RIGHTS, unix(7)). It is a pair of
//! Unix sockets that keep the bounds of messages, so it has no name that others could connect to.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Octets of the longest message. The history of upgrades is the largest part: 16 entries of at most 1,500 octets.
const MESSAGE: usize = 64 << 10;

/// Descriptors in one message. The kernel allows 253 (SCM_MAX_FD).
const DESCRIPTORS: usize = 64;

/// Room for the control data of [`DESCRIPTORS`] descriptors.
const CONTROL: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS));

/// One end of a channel.
#[derive(Debug)]
pub struct Channel(OwnedFd);

impl Channel {
    /// The two ends of a new channel. Programs that this process starts do not inherit them by accident.
    ///
    /// # Errors
    ///
    /// The error of socketpair(2): the process may have no more open files.
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(one), Channel(other)))
    }

    /// The channel that this process has as its standard input. Standard input is empty after that.
    ///
    /// # Errors
    ///
    /// The error of fcntl(2), of dup2(2), or of open(2) for /dev/null.
    pub fn from_stdin() -> io::Result<Channel> {
        let channel = io::stdin().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        Ok(Channel(channel))
    }

    /// Sends a message, with at most [`DESCRIPTORS`] descriptors.
    ///
    /// # Errors
    ///
    /// The message cannot be written as JSON, there are too many descriptors, or the error of sendmsg(2): `BrokenPipe` if the other end
    /// is gone.
    pub fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let octets = serde_json::to_vec(message)?;
        let mut room = [MaybeUninit::uninit(); CONTROL];
        let mut control = SendAncillaryBuffer::new(&mut room);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::other("too many descriptors for one message"));
        }
        // NOSIGNAL: an end that has gone is an error, not the end of this process.
        let parts = [IoSlice::new(&octets)];
        retry_on_intr(|| sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL))?;
        Ok(())
    }

    /// Sends any number of descriptors.
    ///
    /// # Errors
    ///
    /// As [`Channel::send`].
    pub fn send_descriptors(&self, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        descriptors.chunks(DESCRIPTORS).try_for_each(|some| self.send(&some.len(), some))
    }

    /// Waits for a message for at most this time (none: for ever). None: nothing has come.
    ///
    /// # Errors
    ///
    /// The error of poll(2) or recvmsg(2). `UnexpectedEof`: the other end is gone. `InvalidData`: the message is too long, or is not of
    /// this type.
    pub fn receive<T: DeserializeOwned>(
        &self,
        time: Option<Duration>,
    ) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut wait = [PollFd::new(&self.0, PollFlags::IN)];
        let time =
            time.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() });
        match poll(&mut wait, time.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            result => result?,
        };
        let mut octets = vec![0; MESSAGE];
        let mut room = [MaybeUninit::uninit(); CONTROL];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let mut parts = [IoSliceMut::new(&mut octets)];
        let received = retry_on_intr(|| recvmsg(&self.0, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC))?;
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                descriptors.extend(some);
            }
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message that is too long"));
        }
        if received.bytes == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(Some((serde_json::from_slice(&octets[..received.bytes])?, descriptors)))
    }

    /// Waits for as many descriptors, each message for at most this time.
    ///
    /// # Errors
    ///
    /// As [`Channel::receive`]. `TimedOut`: nothing has come in time. `InvalidData`: a message has fewer descriptors than it says.
    pub fn receive_descriptors(&self, count: usize, time: Duration) -> io::Result<Vec<OwnedFd>> {
        let mut descriptors = Vec::new();
        while descriptors.len() < count {
            let message = self.receive::<usize>(Some(time))?;
            let (announced, some) = message.ok_or_else(|| io::Error::from(io::ErrorKind::TimedOut))?;
            if some.is_empty() || some.len() != announced {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "descriptors are missing"));
            }
            descriptors.extend(some);
        }
        Ok(descriptors)
    }

    /// The descriptor, for a program that gets it as standard input.
    pub fn into_descriptor(self) -> OwnedFd {
        self.0
    }
}

impl From<OwnedFd> for Channel {
    fn from(descriptor: OwnedFd) -> Channel {
        Channel(descriptor)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    const SOON: Option<Duration> = Some(Duration::from_secs(20));

    #[test]
    fn a_message_arrives_with_its_descriptors() {
        let (one, other) = Channel::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        one.send(&("words", 7), &[writer.as_fd()]).unwrap();
        drop(writer);
        let (message, mut descriptors): ((String, u32), _) = other.receive(SOON).unwrap().unwrap();
        assert_eq!((message.0.as_str(), message.1, descriptors.len()), ("words", 7, 1));
        std::fs::File::from(descriptors.remove(0)).write_all(b"through it").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through it");
    }

    #[test]
    fn more_descriptors_than_one_message_takes_arrive_in_order() {
        let (one, other) = Channel::pair().unwrap();
        let files: Vec<_> = (0..150).map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let borrowed: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        one.send_descriptors(&borrowed).unwrap();
        let taken = other.receive_descriptors(150, SOON.unwrap()).unwrap();
        let ports = taken.into_iter().map(|one| std::net::UdpSocket::from(one).local_addr().unwrap());
        let sent = files.iter().map(|one| one.local_addr().unwrap());
        assert!(ports.eq(sent));
    }

    #[test]
    fn a_silent_end_and_one_that_is_gone_are_told_apart() {
        let (one, other) = Channel::pair().unwrap();
        assert!(other.receive::<u32>(Some(Duration::from_millis(1))).unwrap().is_none());
        drop(one);
        assert_eq!(other.receive::<u32>(SOON).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(other.send(&1, &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
