//! The machine: which devices it has, and what they are.

use serde_json::{Value, json};
use std::path::Path;

/// A device of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceInfo {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// The model, as the maker calls it; empty where the system does not say.
    pub model: String,
    /// How many threads may run at once: this process's share of the machine.
    pub threads: usize,
    /// Vector extensions that kernels may use.
    pub features: Vec<&'static str>,
    /// Caches of one core, the nearest first; empty where the system does not say.
    pub caches: Vec<Cache>,
}

/// A cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    /// 1 is the nearest.
    pub level: u32,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    /// Its size in bytes.
    pub bytes: usize,
}

impl DeviceInfo {
    /// The device as a JSON object.
    pub fn to_json(&self) -> Value {
        let caches: Vec<Value> = self
            .caches
            .iter()
            .map(|c| json!({ "level": c.level, "kind": c.kind, "bytes": c.bytes }))
            .collect();
        json!({
            "name": self.name,
            "model": self.model,
            "threads": self.threads,
            "features": self.features,
            "caches": caches,
        })
    }
}

/// The devices of this machine, the CPU first.
pub fn devices() -> Vec<DeviceInfo> {
    vec![DeviceInfo {
        name: "cpu",
        model: model(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        features: features(),
        caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
    }]
}

/// The first `model name` of Linux's table of processors.
fn model(cpuinfo: &str) -> String {
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_string())
    };
    cpuinfo.lines().find_map(field).unwrap_or_default()
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    let known = [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("avx", is_x86_feature_detected!("avx")),
        ("f16c", is_x86_feature_detected!("f16c")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avxvnni", is_x86_feature_detected!("avxvnni")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
        ("avx512bf16", is_x86_feature_detected!("avx512bf16")),
        ("avx512fp16", is_x86_feature_detected!("avx512fp16")),
    ];
    known.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    use std::arch::is_aarch64_feature_detected;
    let known = [
        ("neon", is_aarch64_feature_detected!("neon")),
        ("fp16", is_aarch64_feature_detected!("fp16")),
        ("dotprod", is_aarch64_feature_detected!("dotprod")),
        ("i8mm", is_aarch64_feature_detected!("i8mm")),
        ("bf16", is_aarch64_feature_detected!("bf16")),
        ("sve", is_aarch64_feature_detected!("sve")),
    ];
    known.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

/// The caches that Linux lists in `folder`, one a folder `indexN`.
fn caches(folder: &Path) -> Vec<Cache> {
    let cache = |index: usize| {
        let at = folder.join(format!("index{index}"));
        let read = |name: &str| std::fs::read_to_string(at.join(name)).ok();
        Some(Cache {
            level: read("level")?.trim().parse().ok()?,
            kind: read("type")?.trim().to_lowercase(),
            bytes: size(read("size")?.trim())?,
        })
    };
    (0..).map_while(cache).collect()
}

/// `48K` in bytes.
fn size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) => (digits, text.chars().next_back()),
        None => (text, None),
    };
    let shift = match unit {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        _ => 0,
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_are_read_as_linux_writes_them() {
        assert_eq!(size("48K"), Some(49_152));
        assert_eq!(size("2M"), Some(2 << 20));
        assert_eq!(size("64"), Some(64));
        assert_eq!(size("K"), None);
    }

    #[test]
    fn the_model_is_the_first_processors() {
        let table = "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!(model(table), "Fast CPU @ 3 GHz");
        assert_eq!(model(""), "");
    }

    #[test]
    fn the_cpu_is_a_device_with_a_thread() {
        let devices = devices();
        assert_eq!(devices[0].name, "cpu");
        assert!(devices[0].threads >= 1);
    }
}
