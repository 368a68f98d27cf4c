//! The file tests under `filetests/`.

use rlx_testkit::filetest::run_folder;
use std::path::Path;

#[test]
fn file_tests_hold() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    let report = run_folder(&folder, false)?;
    assert!(report.checked > 0, "no file tests in {}", folder.display());
    assert!(report.failed.is_empty(), "{}", report.failed.join("\n"));
    Ok(())
}
