//! Tests of every kept input, every initial input, and a hundred mutations of each, the same ones in every run: a bug that was
//! found once stays mended. A failure prints the input. To replay it, put it into a file under `corpus/`.

use sixfold_fuzz::mutate::mutate;
use sixfold_fuzz::{SHARES, TARGETS, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Mutations of each input.
const CHANGES: u64 = 100;

/// Largest number of kept inputs, and of their octets, of all targets together.
const FILES: usize = 243;
const OCTETS: usize = 500_000;

fn folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// The kept inputs of a target, by name.
fn kept(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = folder(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let octets = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path.file_name().unwrap().to_string_lossy().into_owned(), octets)
        })
        .collect();
    inputs.sort();
    inputs
}

/// Tests an input. On a panic, prints its origin and its octets.
fn try_one(target: &Target, origin: &str, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        let octets: String = input.iter().map(|octet| format!("\\x{octet:02x}")).collect();
        panic!(
            "{}, {origin}: to keep the input: printf '{octets}' > testing/fuzz/corpus/{}/found",
            target.name, target.name
        );
    }
}

/// Tests all inputs of a target, and their mutations.
fn replay(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let mut inputs = kept(target);
    assert!(!inputs.is_empty(), "no input of {name} is kept");
    inputs.extend((0..).zip((target.seeds)()).map(|(number, seed)| (format!("seed {number}"), seed)));
    let mut rng = kit::Random::new(0);
    for (origin, input) in &inputs {
        try_one(target, origin, input);
        for number in 0..CHANGES {
            let mut changed = input.clone();
            mutate(&mut changed, &inputs[rng.place(inputs.len())].1, &mut rng);
            changed.truncate(target.longest_octets);
            try_one(target, &format!("change {number} of {origin}"), &changed);
        }
    }
}

macro_rules! targets {
    ($($test:ident: $target:literal,)*) => {
        $(#[test]
        fn $test() {
            replay($target);
        })*

        #[test]
        fn no_target_is_left_out() {
            let played = [$($target),*];
            assert_eq!(TARGETS.map(|target| target.name), played);
        }
    };
}

targets! {
    messages_are_read_as_others_read_them: "message",
    names_are_what_they_say: "name",
    options_are_read_as_they_were_written: "edns",
    streams_are_cut_where_they_should_be: "framing",
    proxy_headers_are_read_by_the_letter: "proxy",
    queries_of_https_requests_have_one_form: "doh",
    queries_on_quic_streams_are_read_alike_however_they_are_split: "doq",
    only_our_own_cookies_count: "cookie",
    configurations_are_taken_or_explained: "config",
    master_files_are_taken_or_explained: "zone",
    policy_zones_are_taken_or_explained: "policy",
    hosts_files_give_records_that_can_be_served: "hosts",
    query_files_are_questions_or_explained: "queries",
    the_cache_finds_what_was_put_last: "cache",
    the_cache_gives_out_what_the_upstream_gave: "stored",
    reading_from_an_upstream_over_tls_ends: "upstream_tls",
    the_engine_keeps_its_promises_whatever_it_is_told: "engine",
    validation_stays_within_its_budgets_and_writes_what_domain_writes: "dnssec",
    advertisements_are_read_as_their_fields_stand: "advertisement",
    prefixes_are_found_in_answers_that_hold_them: "told",
    files_of_mappings_are_taken_or_explained: "mappings",
    trust_anchors_are_taken_or_explained_and_revoked_keys_stay_so: "anchors",
    what_the_doctor_hears_is_read_as_its_fields_stand_and_can_be_shown: "doctor",
}

#[test]
fn the_kept_inputs_are_few_and_small() {
    assert_eq!(TARGETS.iter().map(|target| target.share).sum::<u64>(), SHARES);
    let (mut files, mut octets) = (0, 0);
    for target in &TARGETS {
        let inputs = kept(target);
        let found = inputs.iter().filter(|(name, _)| name.starts_with("found")).count();
        assert!(inputs.len() <= target.kept + found, "{} inputs of {}", inputs.len(), target.name);
        assert!(inputs.iter().all(|(_, input)| input.len() <= target.longest_octets), "{}", target.name);
        files += inputs.len();
        octets += inputs.iter().map(|(_, input)| input.len()).sum::<usize>();
    }
    assert!(files <= FILES && octets <= OCTETS, "{files} files, {octets} octets");
}

#[test]
fn a_target_can_fail() {
    let said =
        catch_unwind(|| try_one(&Target { run: |_| panic!("on purpose"), ..TARGETS[0] }, "nowhere", b"\x01"));
    let said = *said.unwrap_err().downcast::<String>().unwrap();
    assert!(said.contains("\\x01"), "{said}");
}
