//! An upstream over UDP whose behavior the test chooses: it answers, waits for the test, or stays silent. It counts the
//! questions.

use authority::Zone;
use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Duration;
use wire::Type;

/// Treatment of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// Answers at once.
    Answer,
    /// Answers after this time.
    After(Duration),
    /// Answers when `release` is called.
    Hold,
    /// Never answers.
    Ignore,
}

/// The upstream. It ends with the test.
pub struct Upstream(kit::Upstream);

/// The zone in which each name has the IPv4 address that it spells, and no AAAA record.
pub fn zone() -> Zone {
    Zone::new("v4.test").unwrap()
}

impl Upstream {
    /// Starts an upstream. `behavior` gets each name asked, in lower case and with a dot after each label.
    pub fn start(behavior: impl Fn(&str) -> Behavior + Send + 'static) -> Upstream {
        Upstream::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), behavior)
    }

    /// Starts an upstream at an address, for example one that another upstream had before.
    pub fn start_at(address: SocketAddr, behavior: impl Fn(&str) -> Behavior + Send + 'static) -> Upstream {
        let zone = zone();
        let answer = move |query: &[u8]| {
            let mut out = [0; 4096];
            let length = zone.answer(query, 4096, &mut out).unwrap();
            out[..length].to_vec()
        };
        Upstream(kit::Upstream::start_at(address, move |asked, replies| match behavior(asked.name) {
            Behavior::Answer => replies.now(answer(asked.message)),
            Behavior::After(time) => replies.after(time, answer(asked.message)),
            Behavior::Hold => replies.hold(answer(asked.message)),
            Behavior::Ignore => {}
        }))
    }

    /// Number of times that a question was asked.
    pub fn asked(&self, name: &str, qtype: Type) -> u32 {
        self.0.asked(name, qtype.0)
    }
}

impl Deref for Upstream {
    type Target = kit::Upstream;

    fn deref(&self) -> &kit::Upstream {
        &self.0
    }
}
