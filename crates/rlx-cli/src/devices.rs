//! `rlx devices`: what models can run on here.

use crate::units::bytes;
use clap::Args;
use serde_json::json;

/// Options of `rlx devices`.
#[derive(Args)]
pub(crate) struct Options {
    /// Print one JSON object: {"devices": [{"name", "model", "threads", "features", "caches": [{"level", "kind", "bytes"}]}]}
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let devices = rlx::devices();
    if options.json {
        let devices: Vec<_> = devices.iter().map(rlx::DeviceInfo::to_json).collect();
        println!("{}", json!({ "devices": devices }));
        return Ok(());
    }
    for device in &devices {
        println!(
            "{}: {}",
            device.name,
            if device.model.is_empty() { "unknown model" } else { &device.model }
        );
        println!("  threads: {} (what this process may use at once)", device.threads);
        let features =
            if device.features.is_empty() { "none known".into() } else { device.features.join(" ") };
        println!("  vector extensions: {features}");
        for cache in &device.caches {
            println!("  cache, level {}: {} ({})", cache.level, bytes(cache.bytes), cache.kind);
        }
    }
    Ok(())
}
