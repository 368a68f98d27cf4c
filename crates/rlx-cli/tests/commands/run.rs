//! `rlx run`.

use crate::{Folder, LONG, SMALL, command, json, printed, refused, text};
use serde_json::Value;

const ROWS: &str = "x=[[1, 2, 3], [4, 5, 6]]";
const BIAS: &str = "bias=[0.5, -0.5]";

#[test]
fn the_compiler_gives_what_the_oracle_gives() {
    let folder = Folder::new("run-backends");
    let model = folder.file("m.rlx", SMALL);
    let on = |backend: &str| {
        json(&["run", &model, "--input", ROWS, "--input", BIAS, "--backend", backend, "--json"])
    };
    let (cpu, eval) = (on("cpu"), on("eval"));
    assert_eq!(cpu["backend"], "cpu");
    for i in 0..2 {
        let (cpu, eval) = (&cpu["outputs"][i], &eval["outputs"][i]);
        assert_eq!(cpu["name"], eval["name"]);
        assert_eq!(cpu["shape"], eval["shape"]);
        for key in ["min", "max", "mean"] {
            assert!((cpu[key].as_f64().unwrap() - eval[key].as_f64().unwrap()).abs() < 1e-5, "{cpu} {eval}");
        }
    }
}

#[test]
fn outputs_are_written_by_name() {
    let folder = Folder::new("run-output");
    let model = folder.file("m.rlx", SMALL);
    let results = folder.path("results");
    let results = results.to_str().unwrap();
    printed(&["run", &model, "--input", ROWS, "--input", BIAS, "--output", results]);
    for name in ["probabilities", "sums"] {
        let bytes = std::fs::read(folder.path(&format!("results/{name}.npy"))).unwrap();
        assert!(bytes.starts_with(b"\x93NUMPY"));
    }
}

#[test]
fn fused_or_not_and_on_any_number_of_threads_the_results_are_the_same() {
    let folder = Folder::new("run-options");
    let model = folder.file("m.rlx", SMALL);
    let base = ["run", &model, "--input", "x=random", "--set", "n=50", "--input", BIAS, "--json"];
    let with = |more: &[&str]| json(&[&base[..], more].concat())["outputs"].clone();
    let one = with(&["--threads", "1"]);
    assert_eq!(one, with(&["--threads", "3", "--verify"]));
    let unfused = with(&["--no-fuse"]);
    assert!((one[0]["mean"].as_f64().unwrap() - unfused[0]["mean"].as_f64().unwrap()).abs() < 1e-6);
}

#[test]
fn a_profile_lists_the_time_of_each_step_and_the_trace_has_an_event_for_each() {
    let folder = Folder::new("run-profile");
    let model = folder.file("m.rlx", SMALL);
    let trace = folder.path("trace.json");
    let trace_argument = trace.to_str().unwrap();
    let base = ["run", &model, "--input", ROWS, "--input", BIAS, "--profile", "--trace", trace_argument];
    let table = printed(&base);
    assert!(table.contains("operation") && table.contains("kernel") && table.contains("total of"), "{table}");
    let profile = json(&[&base[..], &["--json"]].concat())["profile"].clone();
    let steps = profile.as_array().unwrap();
    assert!(!steps.is_empty());
    assert!(steps.iter().all(|step| !step["shape"].as_str().unwrap().contains('n')), "sizes are numbers");
    assert!(steps.iter().all(|step| step["ms"].as_f64().unwrap() >= 0.0 && step["kernel"].is_string()));
    let trace: Value = serde_json::from_str(&text(&trace)).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(events.len(), steps.len());
    let mut end = 0.0;
    for event in events {
        assert_eq!(event["ph"], "X");
        let start = event["ts"].as_f64().unwrap();
        assert!(start >= end - 1.0, "steps follow each other");
        end = start + event["dur"].as_f64().unwrap();
    }
}

#[test]
fn too_much_memory_is_refused_before_it_is_taken() {
    let folder = Folder::new("run-cap");
    let model = folder.file("m.rlx", SMALL);
    let (code, message) = refused(&[
        "run",
        &model,
        "--input",
        "x=random",
        "--set",
        "n=1000",
        "--input",
        BIAS,
        "--memory-cap",
        "1KiB",
    ]);
    assert_eq!(code, 1);
    assert!(message.contains("the cap is 1024"), "{message}");
}

#[test]
fn a_run_ends_at_its_time_limit() {
    let folder = Folder::new("run-timeout");
    let model = folder.file("m.rlx", LONG);
    let started = std::time::Instant::now();
    let (code, message) = refused(&[
        "run",
        &model,
        "--input",
        "start=0",
        "--input",
        "x=random",
        "--set",
        "n=30000",
        "--timeout",
        "0.5",
    ]);
    assert_eq!(code, 1);
    assert!(message.contains("the deadline passed"), "{message}");
    assert!(started.elapsed().as_secs() < 60);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_a_run_with_the_exit_code_that_shells_expect() {
    let folder = Folder::new("run-interrupt");
    let model = folder.file("m.rlx", LONG);
    let mut child =
        command(&["run", &model, "--input", "start=0", "--input", "x=random", "--set", "n=30000"])
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
    // Until the run listens, the signal would end the program by itself.
    while !catches_interrupts(child.id()) {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("the run was cancelled"), "{message}");
}

/// Whether a process has a handler for interrupts (signal 2), as Linux tells in `/proc`.
#[cfg(target_os = "linux")]
fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << 1) != 0
}

#[test]
fn a_wrong_name_is_told_with_the_one_that_was_probably_meant() {
    let folder = Folder::new("run-names");
    let model = folder.file("m.rlx", SMALL);
    let (code, message) = refused(&["run", &model, "--input", ROWS, "--input", "bais=[1, 2]"]);
    assert_eq!(code, 1);
    assert!(message.contains("did you mean \"bias\"?"), "{message}");
    let (_, message) = refused(&["run", &model, "--input", "x=random", "--input", BIAS, "--set", "N=4"]);
    assert!(message.contains("did you mean \"n\"?"), "{message}");
    let (_, message) = refused(&["run", &model, "--input", ROWS]);
    assert!(message.contains("--input bias="), "{message}");
}

#[test]
fn options_of_the_other_backend_are_a_wrong_command_line() {
    let folder = Folder::new("run-conflict");
    let model = folder.file("m.rlx", SMALL);
    for options in [["--wide", "--json"].as_slice(), &["--backend", "eval", "--profile"]] {
        let arguments = [&["run", &model, "--input", ROWS, "--input", BIAS], options].concat();
        assert_eq!(refused(&arguments).0, 2, "{options:?}");
    }
}

#[test]
fn a_model_that_is_none_has_an_exit_code_of_its_own() {
    let folder = Folder::new("run-open");
    let model = folder.file("m.rlx", "rlx 1 graph");
    assert_eq!(refused(&["run", &model]).0, 3);
}
