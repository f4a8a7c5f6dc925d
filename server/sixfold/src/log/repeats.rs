//! Repetitions: a text that comes more than [`REPEATS`] times within [`REPEAT_INTERVAL`] is held back, and one line says how often.
//! A fault that repeats itself all the time thus cannot fill the disk, nor hide the other lines. Time is a parameter.

use super::limits::{REPEAT_INTERVAL, REPEAT_TEXTS, REPEATED_TEXT_OCTETS, REPEATS};
use super::record::{Record, cut};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tracing::Level;

/// The texts of the present interval.
#[derive(Default)]
pub struct Repeats {
    /// By the hash of level, message and fields. The key of the hash is random, so nobody can make two texts of one hash.
    texts: HashMap<u64, Text>,
    hasher: RandomState,
}

/// One text.
struct Text {
    since: Duration,
    written: u32,
    held_back: u64,
    level: Level,
    message: String,
}

impl Repeats {
    /// True if the record is to be written. The lines about texts whose interval is over go into `due`.
    pub fn admit(&mut self, now: Duration, record: &Record, due: &mut Vec<Record>) -> bool {
        self.finish(now, due);
        let key = self.hasher.hash_one((&record.level.as_str(), &record.message, &record.fields));
        if let Some(text) = self.texts.get_mut(&key) {
            let is_admitted = text.written < REPEATS;
            text.written += u32::from(is_admitted);
            text.held_back += u64::from(!is_admitted);
            return is_admitted;
        }
        if self.texts.len() >= REPEAT_TEXTS {
            self.drop_oldest(now, due);
        }
        let mut message = record.message.clone();
        cut(&mut message, REPEATED_TEXT_OCTETS);
        let text = Text { since: now, written: 1, held_back: 0, level: record.level, message };
        self.texts.insert(key, text);
        true
    }

    /// Forgets the texts whose interval is over; the lines about them go into `due`.
    pub fn finish(&mut self, now: Duration, due: &mut Vec<Record>) {
        self.texts.retain(|_, text| {
            let goes_on = now.saturating_sub(text.since) < REPEAT_INTERVAL;
            if !goes_on {
                due.extend(text.summary(REPEAT_INTERVAL));
            }
            goes_on
        });
    }

    /// Forgets all texts, at the end of the log.
    pub fn finish_all(&mut self, now: Duration, due: &mut Vec<Record>) {
        due.extend(self.texts.drain().filter_map(|(_, text)| text.summary(now.saturating_sub(text.since))));
    }

    /// Time until the next line is due; none if nothing was held back.
    pub fn next_due(&self, now: Duration) -> Option<Duration> {
        let held_back = self.texts.values().filter(|text| text.held_back > 0);
        held_back.map(|text| (text.since + REPEAT_INTERVAL).saturating_sub(now)).min()
    }

    fn drop_oldest(&mut self, now: Duration, due: &mut Vec<Record>) {
        let oldest = self.texts.iter().min_by_key(|(_, text)| text.since).map(|(&key, _)| key);
        if let Some(text) = oldest.and_then(|key| self.texts.remove(&key)) {
            due.extend(text.summary(now.saturating_sub(text.since)));
        }
    }
}

impl Text {
    /// The line about a text that was held back.
    fn summary(&self, span: Duration) -> Option<Record> {
        let seconds = span.as_secs().max(1);
        let message = format!("message repeated {} times in {seconds} s: [{}]", self.held_back, self.message);
        (self.held_back > 0).then(|| Record::new(self.level, "repeated", message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(level: Level, message: &str) -> Record {
        Record { time: String::new(), ..Record::new(level, "test", message.into()) }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_text_beyond_the_limit_is_held_back_and_one_line_says_how_often() {
        let (mut repeats, mut due) = (Repeats::default(), Vec::new());
        let noise = record(Level::WARN, "noise");
        let written = (0..1_000).filter(|_| repeats.admit(seconds(5), &noise, &mut due)).count();
        assert_eq!((written, due.len()), (REPEATS as usize, 0));
        // Other texts, and the text with another level or other fields, have limits of their own.
        let mut with_field = noise.clone();
        with_field.fields.push(("error", "x".into()));
        for other in [record(Level::INFO, "noise"), record(Level::WARN, "other"), with_field] {
            assert!(repeats.admit(seconds(5), &other, &mut due));
        }
        assert_eq!(repeats.next_due(seconds(10)), Some(seconds(25)));
        repeats.finish(seconds(34), &mut due);
        assert!(due.is_empty());
        repeats.finish(seconds(35), &mut due);
        let [line] = &due[..] else { panic!("{due:?}") };
        let told = format!("message repeated {} times in 30 s: [noise]", 1_000 - REPEATS);
        assert_eq!((line.level, &line.message), (Level::WARN, &told));
        // The next interval begins anew.
        assert!(repeats.admit(seconds(35), &noise, &mut due));
        assert_eq!((repeats.next_due(seconds(35)), due.len()), (None, 1));
    }

    #[test]
    fn the_number_of_texts_is_bounded_and_none_is_forgotten_unsaid() {
        let (mut repeats, mut due) = (Repeats::default(), Vec::new());
        let noise = record(Level::INFO, "noise");
        for _ in 0..=REPEATS {
            repeats.admit(seconds(0), &noise, &mut due);
        }
        for number in 0..10 * REPEAT_TEXTS {
            assert!(repeats.admit(seconds(1), &record(Level::INFO, &number.to_string()), &mut due));
            assert!(repeats.texts.len() <= REPEAT_TEXTS);
        }
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].message, "message repeated 1 times in 1 s: [noise]");
        for _ in 0..=REPEATS {
            repeats.admit(seconds(2), &noise, &mut due);
        }
        repeats.finish_all(seconds(6), &mut due);
        assert_eq!((due.len(), repeats.texts.len()), (2, 0));
        assert_eq!(due[1].message, "message repeated 1 times in 4 s: [noise]");
    }
}
