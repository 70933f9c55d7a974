//! What a replica finds that is started again.

use crate::replica::{Replica, installed};
use crate::story::{policy, ship};
use std::path::PathBuf;
use tread_test_bed::unique;

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_started_again_compiles_nothing_again() {
    let plane = installed();
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(unique("restart"));
    let cache = cache.to_str().unwrap();
    let variables = [("TREAD_CACHE_DIR", cache), ("TREAD_LOG", "debug")];
    let first = Replica::start_with(&plane, &variables);
    first.ready().await;
    ship(&plane).await;
    let times = |replica: &Replica<'_>, what: &str| replica.log().matches(what).count();
    let (compiling, loading) = ("compiling the policy ", "loading the policy ");
    // The shipped ones, and one of a ConfigMap.
    let compiled = times(&first, compiling);
    assert!(compiled > 7, "{compiled}");
    plane.stop(&first.name).unwrap();

    let second = Replica::start_with(&plane, &variables);
    second.ready().await;
    policy(&plane, "apps.ours", "Loaded").await;
    assert!(times(&second, loading) >= compiled, "{}", second.log());
    assert_eq!(times(&second, compiling), 0, "{}", second.log());
    std::fs::remove_dir_all(cache).unwrap();
}
