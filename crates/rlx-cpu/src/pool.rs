//! Threads: one rayon pool for a session, inside which whole programs run.

use rayon::prelude::*;

/// Worker threads. Kernels split their work in parts fixed by shape, so that results do not depend on how many.
pub struct Pool {
    rayon: Option<rayon::ThreadPool>,
    threads: usize,
}

impl Pool {
    /// A pool of `threads` threads; 1 runs everything on the caller's.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn new(threads: usize) -> Result<Pool, rayon::ThreadPoolBuildError> {
        let threads = threads.max(1);
        let rayon = match threads {
            1 => None,
            _ => Some(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .thread_name(|i| format!("rlx-{i}"))
                    .build()?,
            ),
        };
        Ok(Pool { rayon, threads })
    }

    /// As many threads as this process may use at once (its share of the machine, not the machine).
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn of_machine() -> Result<Pool, rayon::ThreadPoolBuildError> {
        Pool::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` inside the pool.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.rayon {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Calls `part` for each of `0..parts`, on all threads. Call inside [`Self::install`].
    pub fn for_each(&self, parts: usize, part: impl Fn(usize) + Sync + Send) {
        if self.rayon.is_none() || parts <= 1 {
            (0..parts).for_each(part);
        } else {
            (0..parts).into_par_iter().with_max_len(1).for_each(part);
        }
    }

    /// Calls `part` with ranges that together are `0..items`, each of about `grain` items, cut the same way whatever
    /// the number of threads.
    pub fn for_ranges(
        &self,
        items: usize,
        grain: usize,
        part: impl Fn(std::ops::Range<usize>) + Sync + Send,
    ) {
        let grain = grain.max(1);
        self.for_each(items.div_ceil(grain), |i| part(i * grain..((i + 1) * grain).min(items)));
    }
}
