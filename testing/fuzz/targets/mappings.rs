//! The libFuzzer program of the target `mappings`. The macro writes its entry points.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sixfold_fuzz::mappings::run(input));
