//! The libFuzzer program of the target `anchors`. The macro writes its entry points.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sixfold_fuzz::anchors::run(input));
