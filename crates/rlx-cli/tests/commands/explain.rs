//! `rlx explain`.

use crate::{Folder, SMALL, json, markup, printed, refused, text};

/// What is kept has a size that depends on values.
const CHOSEN: &str = r#"rlx 1
graph "chosen"(%x: f32[n]) {
  %e = exp(%x)
  %z = constant<value=f32[] [1.0]>()
  %b = broadcast<dims=[n]>(%z)
  %keep = gt(%e, %b)
  %i = nonzero<count=k>(%keep)
  %j = neg(%i)
  return "indices" = %j
}
"#;

#[test]
fn the_terminal_shows_passes_regions_kernels_and_the_plan() {
    let folder = Folder::new("explain-text");
    let model = folder.file("m.rlx", SMALL);
    let account = printed(&["explain", &model, "--set", "n=100", "--steps"]);
    for part in [
        "passes",
        "legalise",
        "composites",
        "softmax",
        "kernels",
        "regions",
        "weights",
        "memory plan for n = 100",
    ] {
        assert!(account.contains(part), "{part}: {account}");
    }
    let without = printed(&["explain", &model]);
    assert!(without.contains("--set n=N"), "{without}");
}

#[test]
fn the_json_accounts_for_every_step_and_every_byte_of_the_plan() {
    let folder = Folder::new("explain-json");
    let model = folder.file("m.rlx", SMALL);
    let account = json(&["explain", &model, "--set", "n=100", "--json"]);
    let steps = account["steps"].as_array().unwrap();
    assert!(!steps.is_empty());
    for (i, step) in steps.iter().enumerate() {
        assert_eq!(step["index"].as_u64(), Some(i as u64));
        assert!(!step["kernel"].as_str().unwrap().is_empty());
        assert_eq!(step["reads"].as_array().unwrap().len(), step["operands"].as_array().unwrap().len());
    }
    assert!(steps.iter().any(|step| step["region"]["nodes"].as_u64().is_some_and(|nodes| nodes > 1)));
    let outputs: Vec<&str> = steps
        .iter()
        .flat_map(|step| step["outputs"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(outputs.contains(&"probabilities") && outputs.contains(&"sums"));
    let memory = &account["memory"];
    assert_eq!(memory["sizes"]["n"], 100);
    let mut most = 0;
    for segment in memory["segments"].as_array().unwrap() {
        for block in segment["blocks"].as_array().unwrap() {
            let end = block["offset"].as_u64().unwrap() + block["bytes"].as_u64().unwrap();
            assert!(end <= segment["peak"].as_u64().unwrap());
            most = most.max(end);
        }
    }
    assert!(most > 0 && memory["peak"].as_u64() >= memory["lower_bound"].as_u64());
    assert!(account["composites"].as_array().unwrap().iter().any(|c| c["name"] == "softmax"));
}

#[test]
fn the_page_is_well_formed_needs_nothing_else_and_has_each_step() {
    let folder = Folder::new("explain-html");
    let model = folder.file("m.rlx", SMALL);
    let page = folder.path("page.html");
    let page_argument = page.to_str().unwrap();
    let account = json(&["explain", &model, "--set", "n=7", "--run", "--html", page_argument, "--json"]);
    let html = text(&page);
    let read = markup::read(&html).unwrap();
    for step in account["steps"].as_array().unwrap() {
        let index = step["index"].as_u64().unwrap();
        assert!(read.ids.contains(&format!("step-{index}")), "step {index}");
        assert!(html.contains(&format!("href=\"#step-{index}\"")), "the drawing lacks step {index}");
        assert!(step["ms"].as_f64().unwrap() >= 0.0);
    }
    assert!(read.elements.iter().filter(|name| *name == "svg").count() >= 3, "graph, memory, times");
    assert!(html.contains("small &lt;&amp;&gt; model") && html.contains("layer/&lt;MatMul&gt;"));
    for outside in ["src=", "@import", "<link", "url(http", "fetch("] {
        assert!(!html.contains(outside), "{outside}");
    }
    // The only address is the name of SVG.
    assert_eq!(html.matches("http").count(), html.matches("http://www.w3.org/2000/svg").count());
}

#[test]
fn sizes_that_depend_on_values_are_told_until_a_run_shows_them() {
    let folder = Folder::new("explain-dynamic");
    let model = folder.file("m.rlx", CHOSEN);
    let planned = json(&["explain", &model, "--set", "n=20", "--json"]);
    assert_eq!(planned["memory"]["unknown"][0], "k");
    let run = json(&["explain", &model, "--set", "n=20", "--run", "--json"]);
    assert!(run["memory"]["unknown"].as_array().unwrap().is_empty());
    assert!(run["steps"].as_array().unwrap().iter().any(|step| step["dynamic"] == true));
}

#[test]
fn an_unknown_size_is_refused_with_those_there_are() {
    let folder = Folder::new("explain-size");
    let model = folder.file("m.rlx", SMALL);
    let (code, message) = refused(&["explain", &model, "--set", "batch=4"]);
    assert_eq!(code, 1);
    assert!(message.contains("symbolic sizes: n"), "{message}");
}
