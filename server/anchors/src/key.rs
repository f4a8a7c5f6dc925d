//! A key that RFC 5011 follows, and the clocks by which it does.

use dnssec::Dnskey;

/// Clock that never jumps, as Linux's CLOCK_BOOTTIME: it counts while the program is not running and while the machine sleeps, and starts
/// anew with the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// Name of the boot, as in `/proc/sys/kernel/random/boot_id`. Times of two boots say nothing about each other.
    pub boot: u128,
    /// Seconds since then.
    pub seconds: u64,
}

/// Point in time, by two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970, as the wall clock says. It may be wrong, and jump.
    pub wall: u64,
    /// Clock that never jumps.
    pub steady: Steady,
}

/// State of a key (RFC 5011 section 4.2). A key in the state "start" is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Seen in a validated set, and in its hold-down. Not trusted.
    AddPend,
    /// Trusted.
    Valid,
    /// Trusted, and absent from the last validated set.
    Missing,
    /// Revoked less than 30 days ago. Not trusted.
    Revoked,
    /// Revoked before. Not trusted, ever again.
    Removed,
}

impl State {
    /// All states.
    pub const ALL: [State; 5] =
        [State::AddPend, State::Valid, State::Missing, State::Revoked, State::Removed];

    /// True if the key may verify the key set of its zone.
    pub const fn is_trusted(self) -> bool {
        matches!(self, State::Valid | State::Missing)
    }

    /// True if the key was revoked, at any time.
    pub const fn is_revoked(self) -> bool {
        matches!(self, State::Revoked | State::Removed)
    }

    /// Name of the state, in the state file and in output.
    pub const fn word(self) -> &'static str {
        match self {
            State::AddPend => "add-pend",
            State::Valid => "valid",
            State::Missing => "missing",
            State::Revoked => "revoked",
            State::Removed => "removed",
        }
    }
}

/// Facts about a key in its hold-down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Seconds for which it has to be seen: 30 days, or the TTL of the set in which it was seen first, if that is longer (RFC 5011 section
    /// 2.4.1).
    pub need: u64,
    /// Last second, since 1970, in which a signature of that set was valid.
    pub expiration: u64,
    /// True if the machine was started anew since, so that the time that has passed is not known.
    pub has_gap: bool,
    /// Trusted keys that signed that set. If all of them are revoked, the hold-down is over without success (section 2.2).
    pub by: Vec<u32>,
}

/// Key of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Number of the key among those of its zone, never used again.
    pub id: u32,
    /// RDATA of its DNSKEY record, without the REVOKE bit.
    pub rdata: Box<[u8]>,
    /// State.
    pub state: State,
    /// When it got into this state, in seconds since 1970 by the wall clock: to show, and not to decide by.
    pub since: u64,
    /// Seconds that have certainly passed since: what the steady clock counted.
    pub held: u64,
    /// Hold-down, in the state `AddPend`.
    pub pending: Option<Pending>,
}

impl Key {
    /// Key tag, as the key is published: the REVOKE bit of a revoked one counts (RFC 5011 section 2.1).
    pub fn key_tag(&self) -> u16 {
        let rdata = crate::anchor::with_revoke(&self.rdata, self.state.is_revoked());
        Dnskey::parse(&rdata).map_or(0, |key| key.key_tag())
    }

    /// True if this is the same key pair, whatever the flags say.
    pub(crate) fn is_pair_of(&self, rdata: &[u8]) -> bool {
        self.rdata.get(2..) == rdata.get(2..)
    }
}
