//! `rlx devices`.

use crate::{json, printed};

#[test]
fn the_cpu_is_listed_with_its_threads() {
    let devices = json(&["devices", "--json"]);
    let cpu = &devices["devices"][0];
    assert_eq!(cpu["name"], "cpu");
    let threads = std::thread::available_parallelism().unwrap().get();
    assert_eq!(cpu["threads"].as_u64(), Some(threads as u64));
    assert!(cpu["features"].is_array() && cpu["caches"].is_array());
    assert!(printed(&["devices"]).starts_with("cpu: "));
}
