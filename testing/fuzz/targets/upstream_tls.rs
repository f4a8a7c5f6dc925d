//! The libFuzzer program of the target `upstream_tls`. The macro writes its entry points.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sixfold_fuzz::upstream_tls::run(input));
