//! Numbers as people read them.

use std::time::Duration;

/// Bytes with three or four digits: `1.50 MiB`.
pub(crate) fn bytes(count: usize) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.2} {}", UNITS[unit]) }
}

/// Milliseconds.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// `65536`, `64KiB`, `2MiB` or `1.5GiB` of the command line, in bytes.
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    let units = [("KiB", 1u64 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let found = units.iter().find_map(|(name, scale)| Some((text.strip_suffix(name)?, *scale)));
    let refused =
        || format!("`{text}` is not a size: expected a number of bytes, or as in 64KiB, 2MiB, 1.5GiB");
    match found {
        None => text.parse().map_err(|_| refused()),
        Some((number, scale)) => {
            let number: f64 = number.trim().parse().map_err(|_| refused())?;
            let bytes = number * scale as f64;
            if bytes.is_finite() && bytes >= 0.0 { Ok(bytes as usize) } else { Err(refused()) }
        }
    }
}

/// `2.5` of the command line, in seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

/// The first `limit` characters of a text, with `…` in place of the rest.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_string();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_and_written_with_units() {
        assert_eq!(bytes(1000), "1000 B");
        assert_eq!(bytes(1536 * 1024), "1.50 MiB");
        assert_eq!(parse_bytes("1.5MiB"), Ok(1536 * 1024));
        assert_eq!(parse_bytes("65536"), Ok(65536));
        for wrong in ["", "x", "-1", "-1KiB", "1MB", "infGiB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_limit_is_a_number_that_is_not_negative() {
        assert_eq!(parse_seconds("0.25"), Ok(Duration::from_millis(250)));
        assert!(parse_seconds("-1").is_err() && parse_seconds("soon").is_err());
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüx", 3), "äö…");
    }
}
