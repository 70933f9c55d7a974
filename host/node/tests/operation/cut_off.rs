//! A config that cuts the node off from its API server.

use crate::node::{Bed, config, unit_with};
use crate::reload;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use tread_model::plan::Step;
use tread_node::operation::Ended;
use tread_node::terms::Terms;
use tread_test_machine::End;

/// An API server that answers while the machine's file does not say what cuts it off; the
/// root of the machine's disk, and where it listens.
fn api_server(
    disk: PathBuf,
    mut lets_through: impl FnMut(&str) -> bool + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let word = std::fs::read_to_string(disk.join("etc/a.conf")).unwrap_or_default();
            if lets_through(&word) {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 64]);
                let _ = stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n");
            }
        }
    });
    address
}

fn bed(lets_through: impl FnMut(&str) -> bool + Send + 'static) -> Bed {
    let mut bed = Bed::with("one", &unit_with("/bin/true"));
    let address = api_server(bed.machine.disk(), lets_through);
    bed.terms = Terms { api_server: Some(address), cut_off: 1, ..bed.terms };
    bed
}

fn why(ended: Ended) -> String {
    let Ended::WentBack { because } = ended else { panic!("it did not go back: {ended:?}") };
    because
}

#[test]
fn a_config_that_cuts_the_node_off_is_gone_back_from_by_the_same_units() {
    let bed = bed(|word| word == "one");
    let because = why(bed.carry_out(&config("two"), &reload()).unwrap());
    assert!(because.contains("was reached before, and for 1 s"), "{because}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    assert_eq!(bed.log(), ["start one", "reload two", "reload one"]);
    assert_eq!(bed.machine.boots().len(), 1);
    assert_eq!(bed.go_on().unwrap(), Ended::Nothing, "it is not tried again");
}

#[test]
fn a_planned_boot_after_which_the_node_is_cut_off_is_gone_back_from_by_one_more() {
    let bed = bed(|word| word == "one");
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    assert_eq!(bed.until_it_boots(&config("two"), &steps), End::Reboot);
    bed.boot();
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    why(bed.go_on().unwrap());
    assert_eq!(bed.log(), ["start one", "start two", "start one"]);
}

#[test]
fn an_api_server_that_comes_again_in_time_is_waited_for() {
    let mut asked = 0;
    let mut bed = bed(move |word| {
        asked += usize::from(word == "two");
        word == "one" || asked > 2
    });
    bed.terms.cut_off = 600;
    assert_eq!(bed.carry_out(&config("two"), &reload()).unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
}

#[test]
fn an_api_server_that_was_not_reached_before_is_not_missed() {
    let bed = bed(|_| false);
    assert_eq!(bed.carry_out(&config("two"), &reload()).unwrap(), Ended::Done);
}
