//! Bounds of the probes.

use engine::Span;

/// Gateways that are probed. A large network has some tens of them.
pub const GATEWAYS: usize = 64;

/// Probes of one gateway. All of a round are sent together, so at most 64 x 8 = 512 wait at a time.
pub const PROBES: usize = 8;

/// Share of the interval by which a probe may come early, as a divisor: a tenth. It keeps the probes of many servers and gateways apart. No
/// probe comes late, so that the time in which a death is found has a bound.
pub const JITTER: u64 = 10;

/// Interval of the steps in which client networks leave a prefix that drains over time. In 10 minutes each step moves one network of 600.
pub const DRAIN_STEP: Span = Span::from_secs(1);
