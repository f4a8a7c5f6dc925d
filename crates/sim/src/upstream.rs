//! Upstreams: what they make of a question in their mood, and what the network makes of that.

use crate::message::question_section;
use crate::message::{self, ExtraRecords};
use crate::outbox::SentQuery;
use crate::rng::Rng;
use crate::timeline::Key;
use crate::truth::{A, AAAA, Bits, MILLI, Said, TXT, Truth};
use crate::weather::{LATE, Mood, Weather};
use std::rc::Rc;

/// What arrives at the engine's end of a link.
#[derive(Debug)]
pub enum Arrival {
    /// A message. `said`: it fits the question, and says this.
    Message {
        /// Octets.
        bytes: Vec<u8>,
        /// Content, of a reply that has to be believed.
        said: Option<(Key, Rc<Said>)>,
        /// The question had no OPT record, so nobody sees whether signatures were wanted.
        to_query_without_opt: bool,
    },
    /// An ICMP error, or the end of a connection.
    Failure,
}

/// What becomes of one question.
#[derive(Debug, Default)]
pub struct Delivery {
    /// What arrives, and after how long.
    pub arrivals: Vec<(u64, Arrival)>,
    /// It is not simply answered in time.
    pub is_trouble: bool,
    /// What somebody who reads the trace is told.
    pub mood: &'static str,
}

/// Reads what the engine asks. None: a probe.
pub fn question_key(truth: &Truth, asked: &[u8]) -> Option<Key> {
    let question = question_section(asked);
    let (name, rest) = question.split_at(question.len() - 4);
    let name = truth.find(&name.to_ascii_lowercase())?;
    let flags = u16::from_be_bytes([asked[2], asked[3]]);
    let opt = message::QUESTION_OFFSET + question.len();
    // The OPT record is the last: root, type, size, extended RCODE, version, flags.
    let dnssec_ok = asked.get(opt + 7).is_some_and(|flags| flags & 0x80 != 0);
    Some(Key {
        name,
        rtype: u16::from_be_bytes([rest[0], rest[1]]),
        bits: Bits { rd: flags & 0x0100 != 0, cd: flags & 0x0010 != 0, ad: flags & 0x0020 != 0, dnssec_ok },
    })
}

/// Whether a question has no OPT record.
pub fn has_no_opt(asked: &[u8]) -> bool {
    asked[11] == 0
}

/// Decides what becomes of a question to the `server`-th upstream.
pub fn deliver(
    truth: &Truth,
    weather: &Weather,
    server: usize,
    asked: &SentQuery,
    now: u64,
    rng: &mut Rng,
) -> Delivery {
    let mut delivery = Delivery::default();
    let mut mood = weather.moods[server];
    if mood == Mood::Mad {
        mood = *rng.choose(&[
            Mood::Good,
            Mood::Slow,
            Mood::Error(2),
            Mood::Lame,
            Mood::Garbage,
            Mood::Liar,
            Mood::Closes,
            Mood::TruncationLoop,
        ]);
    }
    let delay = weather.delay(rng) + if mood == Mood::Slow { rng.exponential(300 * MILLI) } else { 0 };
    let lost = asked.over_udp && rng.permille(weather.loss);
    if weather.cut[server] || mood == Mood::Blackhole || lost {
        return Delivery { is_trouble: true, mood: "lost", ..delivery };
    }
    if mood == Mood::Unreachable || mood == Mood::Closes && !asked.over_udp {
        delivery.arrivals.push((delay, Arrival::Failure));
        return Delivery { is_trouble: true, mood: "link fails", ..delivery };
    }
    let key = question_key(truth, &asked.bytes);
    let section = question_section(&asked.bytes);
    let id = u16::from_be_bytes([asked.bytes[0], asked.bytes[1]]);
    let flags = u16::from_be_bytes([asked.bytes[2], asked.bytes[3]]);
    let said = match key {
        Some(key) => truth.reply_to(key.name, key.rtype, now, key.bits),
        None => Said::default(),
    };
    let is_aaaa = key.is_some_and(|key| key.rtype == AAAA);
    let mut extra =
        ExtraRecords { off_chain: false, additional: rng.permille(50), reversed: rng.permille(100) };
    let mut edns = true;
    let mut section = section.to_vec();
    let error = |rcode: u8, ede: Option<u16>| Said { rcode, ede, ..Said::default() };
    let mut is_fit = true;
    let said = match mood {
        Mood::Error(rcode) => error(rcode, *rng.choose(&[None, None, Some(22)])),
        Mood::AaaaError(rcode) if is_aaaa => error(rcode, None),
        Mood::NoEdns => {
            edns = false;
            // It understands questions without an OPT record.
            if has_no_opt(&asked.bytes) { said } else { error(1, None) }
        }
        Mood::Lame => Said { lame: true, ..Said::default() },
        Mood::TruncationLoop => Said { cut: true, ..Said::default() },
        Mood::Truncates if asked.over_udp => Said { cut: true, ..said },
        Mood::WrongQuestion => {
            is_fit = false;
            if rng.permille(500) {
                let at = section.len() - 3;
                section[at] = if section[at] == A as u8 { AAAA as u8 } else { A as u8 };
            } else {
                section = truth.names[rng.below(truth.names.len() as u64) as usize].wire.clone();
                section.extend([0, AAAA as u8, 0, 1]);
            }
            if section.eq_ignore_ascii_case(question_section(&asked.bytes)) {
                // By chance the right one.
                let at = section.len() - 3;
                section[at] = TXT as u8;
            }
            Said {
                v6: vec![],
                v4: vec![[message::MARK4[0], message::MARK4[1], message::MARK4[2], 9]],
                ttl: 60,
                ..said
            }
        }
        Mood::Liar => {
            extra = ExtraRecords {
                off_chain: matches!(key, Some(key) if key.rtype == A || key.rtype == AAAA),
                ..extra
            };
            said
        }
        Mood::Lowercase => {
            section.make_ascii_lowercase();
            // By chance it was asked so.
            is_fit = !asked.over_udp || section == question_section(&asked.bytes);
            said
        }
        _ => said,
    };
    let mut bytes = message::write_reply(truth, &section, id, flags, &said, extra, edns, rng);
    // No upstream sends more over UDP than the question allows.
    let opt = message::QUESTION_OFFSET + question_section(&asked.bytes).len();
    let size = asked
        .bytes
        .get(opt + 3..opt + 5)
        .map_or(512, |two| usize::from(u16::from_be_bytes([two[0], two[1]])));
    let mut said = said;
    if asked.over_udp && bytes.len() > size {
        said = Said { cut: true, ..Said::default() };
        bytes = message::write_reply(truth, &section, id, flags, &said, ExtraRecords::default(), edns, rng);
    }
    if mood == Mood::Garbage {
        is_fit = false;
        for _ in 0..1 + rng.below(4) {
            // Beyond the flags: the ID may stay right.
            let at = 4 + rng.below(bytes.len() as u64 - 4) as usize;
            bytes.truncate(at + 1);
            if bytes.len() <= 13 {
                break;
            }
        }
        if !asked.over_udp {
            // Over TCP something that is no message at all.
            bytes = vec![0xff; bytes.len().max(1)];
        }
        // Cut exactly where a message could end, it might be one.
        bytes.pop();
    }
    let is_damaged = asked.over_udp && rng.permille(weather.damage);
    if is_damaged {
        // A checksum keeps damage away from records; what is left is damage to what the engine must check.
        is_fit = false;
        match rng.below(4) {
            0 => bytes[rng.below(2) as usize] ^= 1 << rng.below(8),
            1 if !bytes.is_empty() => {
                let length = rng.below(bytes.len() as u64) as usize;
                bytes.truncate(length);
            }
            2 if bytes.len() > 12 + section.len() => {
                let at = 12 + rng.below(section.len() as u64 - 2) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
            _ if bytes.len() > 3 => bytes[2] &= 0x7f,
            _ => {}
        }
    }
    // It is asked for again over TCP; what is cut there, too, is a failure.
    let is_cut = said.cut && asked.over_udp;
    let is_fine = mood == Mood::Good || mood == Mood::Liar || is_cut;
    delivery.is_trouble =
        !is_fit || delay > LATE || said.is_failure() || !is_fine || said.cut && !asked.over_udp;
    delivery.mood = if is_cut { "truncated" } else { "answered" };
    let to_query_without_opt = has_no_opt(&asked.bytes);
    let effective = said.effective(asked.over_udp, flags & 0x0100 != 0);
    let said = key.filter(|_| is_fit && !is_cut).map(|key| (key, Rc::new(effective)));
    if rng.permille(weather.duplicates) && asked.over_udp {
        let later = delay + weather.delay(rng);
        delivery.arrivals.push((
            later,
            Arrival::Message { bytes: bytes.clone(), said: said.clone(), to_query_without_opt },
        ));
    }
    delivery.arrivals.push((delay, Arrival::Message { bytes, said, to_query_without_opt }));
    delivery
}
