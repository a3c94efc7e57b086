//! Whether what was sampled is flat: a line through the memory after the warm-up, and the open files at both ends.

use std::fmt;
use std::time::Duration;

/// The head of the CSV.
pub(crate) const HEAD: &str = "seconds,rss_kib,files,threads\n";
/// The memory may rise by so much in ten minutes, in KiB: less than what the allocator keeps back now and then.
const SLOPE: f64 = 1024.0;
/// Pools, caches and the allocator fill up in the first part, and are not looked at.
const WARM_UP: f64 = 1.0 / 6.0;
/// Of less than this no line says anything about the memory.
const SHORTEST: Duration = Duration::from_secs(600);
/// In the last moments of the load its connections end, one after another.
const LAST: Duration = Duration::from_secs(1);

/// What the service held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    /// Resident, in KiB.
    pub(crate) memory: u64,
    pub(crate) files: u64,
    pub(crate) threads: u64,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, memory, files, threads } = self;
        writeln!(f, "{:.1},{memory},{files},{threads}", at.as_secs_f64())
    }
}

/// What the samples come to.
#[derive(Debug)]
pub(crate) struct Judged {
    /// KiB in ten minutes; of a short run none.
    slope: Option<f64>,
    memory: (u64, u64),
    files: (u64, u64),
    threads: (u64, u64),
    pub(crate) wrong: Vec<String>,
}

pub(crate) fn judge(samples: &[Sample], length: Duration) -> Judged {
    let under_load = length.mul_f64(WARM_UP)..length.saturating_sub(LAST);
    let warm: Vec<Sample> =
        samples.iter().copied().filter(|sample| under_load.contains(&sample.at)).collect();
    assert!(!warm.is_empty(), "no sample after the warm-up");
    let memory = warm.iter().map(|sample| sample.memory);
    let memory = (memory.clone().min().unwrap_or_default(), memory.max().unwrap_or_default());
    let (files, threads) = (ends(&warm, |sample| sample.files), ends(&warm, |sample| sample.threads));
    let slope = (length >= SHORTEST).then(|| slope(&warm) * 600.0);
    let mut wrong = Vec::new();
    if let Some(slope) = slope.filter(|slope| *slope >= SLOPE) {
        wrong.push(format!("the memory rises by {slope:.0} KiB in 10 minutes"));
    }
    for (what, (from, to)) in [("open files", files), ("threads", threads)] {
        if from != to {
            wrong.push(format!("{to} {what} at the end, and {from} after the warm-up"));
        }
    }
    Judged { slope, memory, files, threads, wrong }
}

/// The medians of the first tenth and of the last: a connection may be made anew just when it is looked at.
fn ends(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> (u64, u64) {
    let tenth = samples.len().div_ceil(10);
    let median = |part: &[Sample]| {
        let mut values: Vec<u64> = part.iter().map(&of).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    (median(&samples[..tenth]), median(&samples[samples.len() - tenth..]))
}

/// The slope of the line with the least squares, in KiB per second.
fn slope(samples: &[Sample]) -> f64 {
    let count = samples.len() as f64;
    let x = |sample: &Sample| sample.at.as_secs_f64();
    let y = |sample: &Sample| sample.memory as f64;
    let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (middle, level) = (mean(&x), mean(&y));
    let covariance = mean(&|sample| (x(sample) - middle) * (y(sample) - level));
    let variance = mean(&|sample| (x(sample) - middle).powi(2));
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |kib: u64| kib as f64 / 1024.0;
        write!(f, "after the warm-up {:.1} to {:.1} MiB resident", mib(self.memory.0), mib(self.memory.1))?;
        match self.slope {
            Some(slope) => write!(f, ", {slope:+.0} KiB in 10 minutes")?,
            None => write!(f, ", too short for a slope")?,
        }
        write!(
            f,
            "; open files {:?}, threads {:?} after the warm-up and at the end",
            self.files, self.threads
        )
    }
}

/// Half an hour, a sample each 5 seconds, of a service whose memory and files go like this.
fn half_an_hour(memory: impl Fn(u64) -> u64, files: impl Fn(u64) -> u64) -> Vec<String> {
    let sample =
        |at| Sample { at: Duration::from_secs(at), memory: memory(at), files: files(at), threads: 3 };
    let samples: Vec<_> = (0..1800).step_by(5).map(sample).collect();
    judge(&samples, Duration::from_secs(1800)).wrong
}

#[test]
fn what_is_flat_after_its_warm_up_is_flat() {
    let noise = |at: u64| at * 2_654_435_761 % 512;
    assert_eq!(half_an_hour(|at| 8000 + at.min(200) * 20 + noise(at), |at| at.min(12)), [""; 0]);
    assert_eq!(half_an_hour(|at| 20_000 - at, |_| 12), [""; 0]);
}

#[test]
fn a_leak_of_memory_or_of_one_file_is_found() {
    let [told] = &half_an_hour(|at| 8000 + at * 2, |_| 12)[..] else { panic!("not found") };
    assert!(told.contains("1200 KiB in 10 minutes"), "{told}");
    let [told] = &half_an_hour(|_| 8000, |at| 12 + at / 900)[..] else { panic!("not found") };
    assert!(told.contains("13 open files at the end, and 12"), "{told}");
}
