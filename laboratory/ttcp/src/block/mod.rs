//! A connection block (TCB): one end of a connection. It knows no other connections and no I/O.
//!
//! `input.rs` takes segments, `output.rs` makes them, `timers.rs` decides at deadlines. The states are those of RFC 9293; the
//! half-synchronized ("starred") states of RFC 1379 section 3.3 are a state and a flag: [`Block::send_syn`] for a block that acts as synchronized although
//! its SYN is not acknowledged, [`Block::finish`] for a FIN that was asked for before the connection is synchronized.

mod input;
mod output;
pub(crate) mod timers;

pub(crate) use input::{Treatment, Verdict};

use crate::cookie::FastOpenOption;
use crate::limits::{DEFAULT_MSS, FIRST_SEGMENTS, FIRST_WINDOW, SEND_QUEUE};
use crate::reassembly::Reassembly;
use crate::retransmission::Rto;
use crate::segment::{ConnectionCount, Segment};
use crate::serial::Serial;
use crate::settings::Settings;
use core::time::Duration;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// State of a connection (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// SYN sent, none received.
    SynSent,
    /// Both SYNs on their way; data waits.
    SynReceived,
    /// Data flows.
    Established,
    /// We have finished; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer goes on.
    FinWait2,
    /// The peer has finished; we go on.
    CloseWait,
    /// Both have finished at once.
    Closing,
    /// Both have finished; our FIN is not acknowledged.
    LastAck,
    /// Wait for old segments to die out.
    TimeWait,
    /// The end: the block is given back.
    Closed,
}

/// Length of TIME-WAIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeWait {
    /// 2 MSL (RFC 9293).
    TwoMsl,
    /// 8 RTO, where both ends sent connection counts and the connection lasted less than an MSL (RFC 1644 section 3.4).
    EightRto,
}

/// A connection block.
#[derive(Debug)]
pub(crate) struct Block {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub state: State,
    /// SENDSYN of RFC 1379: our SYN is not acknowledged, but the state is a synchronized one.
    pub send_syn: bool,
    /// The user has finished. In SYN-SENT and SYN-RECEIVED this is SENDFIN of RFC 1379.
    pub finish: bool,
    /// Deadline under which the stack has filed the block.
    pub filed_deadline: Option<Duration>,

    // Sending (RFC 9293 section 3.3.1).
    iss: Serial,
    una: Serial,
    nxt: Serial,
    max: Serial,
    /// Octets that are not acknowledged, from `queue_start` on.
    queue: VecDeque<u8>,
    queue_start: Serial,
    peer_window: usize,
    /// Segment and acknowledgment of the last window update.
    window_seq: Serial,
    window_ack: Serial,
    mss: usize,
    congestion_window: usize,
    slow_start_threshold: usize,
    duplicate_acks: u32,

    // Receiving.
    irs: Serial,
    receive: Reassembly,
    ack_now: bool,
    ack_due: Option<Duration>,

    // T/TCP.
    transactions: bool,
    resend_at_once: bool,
    plain_syn_again: bool,
    /// Connection count of this end, and the option of the first SYN.
    count: ConnectionCount,
    /// Connection count of the peer; none if it sent none.
    peer_count: Option<Serial>,
    started: Duration,

    // TCP Fast Open.
    /// Option of our SYN: the client's request or cookie, or the cookie that the server gives.
    pub fast_open_option: Option<FastOpenOption>,
    /// A valid cookie has come with the SYN: its data is the user's, although our SYN is not acknowledged.
    fast_opened: bool,

    // Timers.
    rto: Rto,
    retransmissions: u32,
    retransmit_due: Option<Duration>,
    /// Sequence number and time of the segment whose round trip is measured.
    measured: Option<(Serial, Duration)>,
    /// End of TIME-WAIT, or of a connection whose peer is silent.
    end_due: Option<Duration>,
    /// An octet is to be sent although the peer's window is closed.
    probe_window: bool,
    /// Largest segment that this end receives, which its SYN says.
    own_mss: u16,
}

impl Block {
    /// A block that is about to send its SYN.
    pub fn new(
        (local, remote): (SocketAddr, SocketAddr),
        iss: Serial,
        count: ConnectionCount,
        settings: &Settings,
        now: Duration,
    ) -> Block {
        let own_mss = settings.mtu - if local.is_ipv4() { 40 } else { 60 };
        Block {
            local,
            remote,
            state: State::SynSent,
            send_syn: false,
            finish: false,
            filed_deadline: None,
            iss,
            una: iss,
            nxt: iss,
            max: iss,
            queue: VecDeque::new(),
            queue_start: iss.plus(1),
            peer_window: FIRST_WINDOW,
            window_seq: Serial(0),
            window_ack: Serial(0),
            mss: usize::from(own_mss.min(DEFAULT_MSS)),
            congestion_window: FIRST_SEGMENTS * usize::from(own_mss),
            slow_start_threshold: usize::MAX,
            duplicate_acks: 0,
            irs: Serial(0),
            receive: Reassembly::default(),
            ack_now: false,
            ack_due: None,
            transactions: settings.transactions,
            resend_at_once: settings.resend_at_once,
            plain_syn_again: settings.plain_syn_again,
            count,
            peer_count: None,
            started: now,
            fast_open_option: None,
            fast_opened: false,
            rto: Rto::new(settings.first_rto, settings.shortest_rto),
            retransmissions: 0,
            retransmit_due: None,
            measured: None,
            end_due: None,
            probe_window: false,
            own_mss,
        }
    }

    /// Uses the segment size of the peer, as its SYN or the cache says.
    pub fn set_mss(&mut self, mss: Option<u16>) {
        self.mss = usize::from(mss.unwrap_or(DEFAULT_MSS).clamp(64, self.own_mss));
    }

    /// Queues octets for sending. Returns the number that found room; none after [`Block::close`].
    pub fn send(&mut self, octets: &[u8]) -> usize {
        if self.finish {
            return 0;
        }
        let room = SEND_QUEUE - self.queue.len();
        let taken = octets.len().min(room);
        self.queue.extend(&octets[..taken]);
        taken
    }

    /// The user has finished sending: a FIN follows the last octet.
    pub fn close(&mut self) {
        self.finish = true;
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {}
        }
    }

    /// Takes the received octets that are in order.
    pub fn read(&mut self) -> Vec<u8> {
        self.receive.read()
    }

    /// Octets of the peer that the user has not got.
    pub fn octets_held(&self) -> usize {
        self.receive.octets()
    }

    /// True if data may be given to the user: the connection is synchronized, or half-synchronized by the TAO test.
    pub fn is_open(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::Closed)
    }

    /// True if the peer has finished and all that it sent has come.
    pub fn peer_has_finished(&self) -> bool {
        self.receive.is_finished()
    }

    /// The RST with which the connection is aborted.
    pub fn reset_segment(&self) -> Segment<'static> {
        Segment {
            seq: self.max,
            ack: (self.state != State::SynSent).then(|| self.receive.next()),
            rst: true,
            ..Segment::between(self.local, self.remote)
        }
    }

    /// True for a server's block that a cookie has opened and whose handshake is not complete.
    pub fn is_pending_fast_open(&self) -> bool {
        self.fast_opened && self.send_syn
    }

    /// True if our first SYN shows a cookie.
    fn shows_cookie(&self) -> bool {
        matches!(self.fast_open_option, Some(FastOpenOption::Cookie(_))) && !self.fast_opened
    }

    /// True if both ends send connection counts.
    fn speaks_counts(&self) -> bool {
        self.transactions && self.peer_count.is_some()
    }

    /// Sequence number of our FIN: the one after the last octet.
    fn fin_seq(&self) -> Serial {
        self.queue_start.plus(self.queue.len() as u32)
    }

    /// True if our FIN was sent and is acknowledged.
    fn fin_is_acknowledged(&self) -> bool {
        self.finish && self.una.is_after(self.fin_seq())
    }

    /// The host at the other end.
    pub fn peer(&self) -> IpAddr {
        self.remote.ip()
    }
}
