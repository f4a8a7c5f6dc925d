use super::*;
use crate::base::name_hash::HashKey;
use kit::Random;

const KEY: HashKey = HashKey([0x1234_5678_9abc_def1, 0x0fed_cba9_8765_4321]);

/// Places of the table, those of the names that need DNS64 in one worker.
const ROOM: usize = 8192;

/// Draws names under Zipf's law: the name of rank `r` has a share in proportion to `1 / r`.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(names: usize) -> Zipf {
        let mut sum = 0.0;
        let sums = (1..=names).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Zipf(sums.collect())
    }

    /// A rank, from 0.
    fn draw(&self, random: &mut Random) -> usize {
        let at = random.unit() * self.0.last().expect("names");
        self.0.partition_point(|&sum| sum <= at)
    }
}

/// A table that counts numbers, and their true counts.
struct Stream {
    table: SpaceSaving<u64>,
    truth: Vec<u64>,
    all: u64,
}

impl Stream {
    fn new(names: usize) -> Stream {
        Stream { table: SpaceSaving::new(ROOM), truth: vec![0; names], all: 0 }
    }

    fn count(&mut self, name: usize) {
        self.truth[name] += 1;
        self.all += 1;
        self.table.count(KEY.hash_number(name as u128), 1, || name as u64);
    }

    /// Counts of the table for each of the first names.
    fn counted(&self, names: usize) -> Vec<u64> {
        let mut counted = vec![0; names];
        for (count, &name) in self.table.iter().filter(|(_, name)| **name < names as u64) {
            counted[name as usize] = count;
        }
        counted
    }
}

/// Half of the stream are names that are counted once each, `names` and above.
fn half_flooded(before: u64, names: usize, draws: u64) -> Stream {
    let zipf = Zipf::new(names);
    let mut random = Random::new(7);
    let flood = before + draws;
    let mut stream = Stream::new(names + flood as usize);
    let mut fresh = names..;
    (0..before).for_each(|_| stream.count(fresh.next().expect("a name")));
    for _ in 0..draws {
        stream.count(zipf.draw(&mut random));
        stream.count(fresh.next().expect("a name"));
    }
    stream
}

#[test]
fn the_first_hundred_of_a_million_names_under_zipf_are_counted_to_a_percent() {
    let zipf = Zipf::new(1_000_000);
    let mut random = Random::new(1);
    let mut stream = Stream::new(1_000_000);
    (0..1_000_000).for_each(|_| stream.count(zipf.draw(&mut random)));
    // The name of rank 100 has about 10^6 / (100 * H(10^6)) = 695 of 10^6 draws.
    assert!((600..800).contains(&stream.truth[99]), "{}", stream.truth[99]);
    for (counted, truth) in stream.counted(100).into_iter().zip(&stream.truth) {
        assert!(counted <= *truth && counted * 100 >= truth * 99, "{counted} of {truth}");
    }
    // Behind the first hundred, no other name looks like one of them.
    let mut all: Vec<u64> = stream.table.iter().map(|(count, _)| count).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    let mut truth = stream.truth;
    truth.sort_unstable_by(|one, other| other.cmp(one));
    assert!(all.iter().zip(&truth).take(100).all(|(counted, truth)| counted <= truth));
}

#[test]
fn a_flood_of_new_names_displaces_no_name_beyond_the_bound() {
    for before in [0, 300_000] {
        let stream = half_flooded(before, 100_000, 300_000);
        let bound = stream.all / ROOM as u64;
        assert!(stream.table.missed() <= bound, "{} of {bound}", stream.table.missed());
        for (counted, &truth) in stream.counted(100_000).into_iter().zip(&stream.truth) {
            assert!(counted <= truth && truth <= counted + bound, "{counted} of {truth}, {before} before");
        }
        // 300,000 draws of 100,000 names: the 100 most frequent have 248 or more on average, and the bound is 73 to 109.
        let heavy = stream.counted(100).into_iter().filter(|&counted| counted > 0).count();
        assert_eq!(heavy, 100);
        // Names of the flood are counted at most once each, however high the smallest count is.
        let flood = stream.table.iter().filter(|(_, name)| **name >= 100_000);
        assert!(flood.map(|(count, _)| count).all(|count| count == 1));
    }
}

#[test]
fn few_keys_are_counted_exactly_and_each_keeps_its_value() {
    let mut table = SpaceSaving::new(4);
    for (key, times) in [(1, 5), (2, 1), (3, 2), (2, 7), (4, 1)] {
        *table.count(KEY.hash_number(key), times, || 10 * key) += 1;
    }
    let mut all: Vec<(u64, u128)> = table.iter().map(|(count, &value)| (count, value)).collect();
    all.sort_unstable();
    assert_eq!((all, table.missed()), (vec![(1, 41), (2, 31), (5, 11), (8, 22)], 1));
    // The next key takes the place of 4, and begins with its count.
    table.count(KEY.hash_number(5), 1, || 50);
    assert_eq!(table.get_mut(KEY.hash_number(4)), None);
    assert_eq!(table.get_mut(KEY.hash_number(5)), Some(&mut 50));
    assert!(table.iter().any(|(count, &value)| (count, value) == (1, 50)));
    assert_eq!(table.missed(), 2);
    table.clear();
    assert_eq!((table.iter().count(), table.missed()), (0, 0));
}

#[test]
fn keys_that_collide_in_the_index_are_found_after_others_have_left() {
    // All keys have one of two homes at the end of the index, so that probing wraps around.
    let mut table = SpaceSaving::new(8);
    let mut random = Random::new(3);
    let mut truth = std::collections::HashMap::new();
    for _ in 0..10_000 {
        let hash = random.below(12) << 32 | (14 + random.below(2));
        let is_known = table.get_mut(hash).is_some();
        let value = *table.count(hash, 1, || hash);
        assert_eq!(value, hash);
        let counted = truth.entry(hash).or_insert(0u64);
        *counted = if is_known { *counted + 1 } else { 1 };
        for (count, value) in table.iter() {
            assert_eq!(count, truth[value], "{value:x}");
        }
    }
    assert_eq!(table.iter().count(), 8);
}
