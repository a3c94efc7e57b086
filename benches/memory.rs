//! What a claim on `Memory` costs among a thousand and among a million keys (at most 3 times as much),
//! and the longest pause of one claim while the million grows (at most 50 ms).

use std::sync::Arc;
use std::time::{Duration, Instant};

use pushonce::store::Memory;
use pushonce::{Store, lock};

const SAMPLE: usize = 20_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (small, _) = cost_among(1_000).await;
        let (large, pause) = cost_among(1_000_000).await;
        let ratio = large.as_secs_f64() / small.as_secs_f64();
        println!("claim and complete on Memory: {small:?} among 1,000 keys, {large:?} among 1,000,000: {ratio:.2} times (limit 3)");
        assert!(ratio <= 3.0, "a claim among a million keys costs {ratio:.2} times one among a thousand");
        println!("longest claim and complete while 1,000,000 keys were made: {pause:?} (limit 50 ms)");
    });
}

/// The median cost of a first message among so many keys, and the longest while they were made.
async fn cost_among(keys: usize) -> (Duration, Duration) {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let mut longest = Duration::ZERO;
    for key in 0..keys {
        longest = longest.max(once(&store, key).await);
    }
    let mut sample = Vec::with_capacity(SAMPLE);
    for key in keys..keys + SAMPLE {
        sample.push(once(&store, key).await);
    }
    sample.sort();
    (sample[SAMPLE / 2], longest.max(sample[SAMPLE - 1]))
}

async fn once(store: &Arc<dyn Store>, key: usize) -> Duration {
    let began = Instant::now();
    lock(("bench", key.to_string()), store).run(async { Ok(()) }).await.unwrap();
    began.elapsed()
}
