//! Sentinels: bytes of a known pattern behind every planned piece of memory, which a kernel that keeps to its results
//! leaves as they are. For tests; see [`RunControl::sentinels`](crate::RunControl::sentinels).

use rlx_opt::plan::Request;
use std::ops::Range;

/// The bytes of a sentinel: a cache line, more than the widest vector.
pub const SENTINEL_BYTES: usize = 64;

/// What they hold: a float that is none of anyone's results, and an odd byte.
const PATTERN: u8 = 0xA5;

/// The sentinel behind one piece of memory.
#[derive(Clone, Debug)]
pub(crate) struct Sentinel {
    bytes: Range<usize>,
    first: usize,
    last: usize,
}

/// Makes room for a sentinel behind what is asked for.
pub(crate) fn widen(request: &mut Request) {
    request.bytes = request.bytes.saturating_add(SENTINEL_BYTES);
}

/// The sentinels of widened requests that lie at these offsets.
pub(crate) fn of_plan(requests: &[Request], offsets: &[usize]) -> Vec<Sentinel> {
    let place = |(request, offset): (&Request, &usize)| {
        let end = offset + request.bytes;
        Sentinel { bytes: end - SENTINEL_BYTES..end, first: request.first, last: request.last }
    };
    requests.iter().zip(offsets).map(place).collect()
}

/// Writes the pattern behind what is first needed by step `step`.
pub(crate) fn write(sentinels: &[Sentinel], step: usize, arena: &mut [u8]) {
    for sentinel in sentinels.iter().filter(|s| s.first == step) {
        arena[sentinel.bytes.clone()].fill(PATTERN);
    }
}

/// Whether all that are live at step `step` are as they were written.
pub(crate) fn intact(sentinels: &[Sentinel], step: usize, arena: &[u8]) -> bool {
    let mut live = sentinels.iter().filter(|s| s.first <= step && step <= s.last);
    live.all(|s| is_pattern(&arena[s.bytes.clone()]))
}

/// Fills `bytes` with the pattern.
pub fn fill(bytes: &mut [u8]) {
    bytes.fill(PATTERN);
}

/// Whether all `bytes` have the pattern.
pub fn is_pattern(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| *b == PATTERN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_written_behind_a_live_piece_is_found_and_one_behind_a_dead_piece_is_not() {
        let mut requests =
            [Request { bytes: 10, first: 0, last: 1 }, Request { bytes: 64, first: 1, last: 2 }];
        requests.iter_mut().for_each(widen);
        let sentinels = of_plan(&requests, &[0, 128]);
        let mut arena = vec![0u8; 256];
        write(&sentinels, 0, &mut arena);
        write(&sentinels, 1, &mut arena);
        assert!(intact(&sentinels, 1, &arena));
        arena[10] = 0;
        assert!(!intact(&sentinels, 1, &arena));
        assert!(intact(&sentinels, 2, &arena));
        arena[255] ^= 1;
        assert!(!intact(&sentinels, 2, &arena));
    }
}
