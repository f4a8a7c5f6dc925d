//! The libFuzzer program of the target `zone`. The macro writes its entry points.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sixfold_fuzz::zone::run(input));
