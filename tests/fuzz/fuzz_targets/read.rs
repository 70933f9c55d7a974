//! No bytes make the readers panic, and what the fast one accepts is accepted
//! by the diagnosing one and by serde_json, with the same result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tread_model::read::{Input, Side, diagnosed, fast_only};

fuzz_target!(|bytes: &[u8]| {
    // A zero byte, which no text has, separates two sides.
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let old = parts.next().unwrap_or_default();
    let new = parts.next().unwrap_or(old);
    let sides = [[Input { name: "old", bytes: old }], [Input { name: "new", bytes: new }]];
    let slow = diagnosed(&sides[0], &sides[1]);
    if let Some((first, second)) = fast_only(&sides[0], &sides[1]) {
        assert_eq!(Ok((without_text(first), without_text(second))), slow);
        for bytes in [old, new] {
            assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok());
        }
    }
});

fn without_text(mut side: Side<'_>) -> Side<'_> {
    side.config.files.iter_mut().for_each(|file| file.raw = &[]);
    side.config.units.iter_mut().for_each(|unit| unit.raw = &[]);
    side
}
