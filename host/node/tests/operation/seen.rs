//! What an admin sees in a terminal, and nobody else.

use crate::carrying::NoBoot;
use crate::node::{Bed, config, unit_with};
use crate::reload;
use crate::watched::{PROGRAM, adopted};

#[test]
fn the_words_of_a_unit_that_failed_are_for_roots_terminal_alone_and_are_kept_nowhere() {
    const WORDS: &str = "these are its words";
    let reload_fails = format!("/bin/sh -c 'echo {WORDS} $$(printf \"\\\\033[31m\"); exit 1'");
    let bed = Bed::with("one", &unit_with(&reload_fails));
    adopted(&bed, &config("one"));
    let ended = bed.carry_out_with(&NoBoot, &config("two"), &reload());
    assert!(ended.is_err(), "nobody may boot it: {ended:?}");
    let status = format!("{PROGRAM} node status");
    let said = bed.machine.run_well(["script", "-qec", &status, "/dev/null"]).unwrap();
    assert!(said.contains("reload a.service failed"), "{said}");
    assert!(said.contains("what a.service said, from journald:"), "{said}");
    assert!(said.contains(&format!("  | {WORDS}")) && !said.contains('\u{1b}'), "{said}");
    // Into a pipe, or for a script.
    for rest in [&[][..], &["-o", "json"], &["-o", "prometheus"]] {
        let words = [&[PROGRAM, "node", "status"], rest].concat();
        let shown = bed.machine.run_well(words).unwrap();
        assert!(shown.contains("reload a.service") && !shown.contains(WORDS), "{shown}");
    }
    let kept = bed.machine.run(["grep", "-r", WORDS, "/var/lib/tread"]).unwrap();
    assert_eq!((kept.status, kept.out.as_str()), (Some(1), ""), "nothing of it is kept");
    // Each step has its dates, also that of writing.
    let steps = bed.progress().steps;
    assert!(steps.iter().all(|step| step.started.is_some() && step.seconds.is_some()), "{steps:?}");
    // Whoever is not root is told what to do.
    let nobody = ["setpriv", "--reuid=65534", "--clear-groups", PROGRAM, "node", "status"];
    let refused = bed.machine.run(nobody).unwrap();
    assert_eq!(refused.status, Some(1));
    assert!(refused.err.contains("run this as root"), "{refused:?}");
}
