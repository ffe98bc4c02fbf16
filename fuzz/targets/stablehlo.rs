#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lmsc_fuzz::stablehlo(bytes));
