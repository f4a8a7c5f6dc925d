//! The target `name` for libFuzzer, whose entry points the macro writes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sixfold_fuzz::name::run(input));
