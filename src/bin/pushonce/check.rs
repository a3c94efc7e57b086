//! `pushonce check`: whether the times of a deployment fit together, from numbers or from a Terraform plan.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pushonce::sizing::Sizing;

use crate::plan::Plan;
use crate::report::{Checked, Report};
use crate::{Answer, Failed, deployment};

/// A plan is text of some kilobytes for each resource; what is larger than this is none.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Checks whether the times of a deployment fit together, and a Terraform plan for what dead-lettering needs.
///
/// Times are seconds, or have a unit: 900, 900s, 15m, 1h, 7d. What is not given has the default of the
/// Terraform module. With --plan the numbers are those of the plan; lease and ttl are for a service that
/// does not take them from its environment.
///
/// Exit code: 0 where nothing is refused, though there may be warnings, and what the plan does not tell;
/// 1 where something is refused; 2 where it could not be looked at.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// What `terraform show -json PLAN` printed, or - for stdin: checks each push subscription in it
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_A_PLAN)]
    plan: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    /// Refuses also what is only a warning
    #[arg(long)]
    strict: bool,
    /// Refuses also what cannot be told from the plan
    #[arg(long)]
    known: bool,
    /// How long a claim holds its key [default: 900]
    #[arg(long, value_name = "TIME", value_parser = time)]
    lease: Option<Duration>,
    /// How long a done key is remembered [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = time)]
    ttl: Option<Duration>,
    /// Cloud Run's request timeout [default: 570]
    #[arg(long, value_name = "TIME", value_parser = time)]
    request_timeout: Option<Duration>,
    /// The subscription's ack deadline [default: 600]
    #[arg(long, value_name = "TIME", value_parser = time)]
    ack_deadline: Option<Duration>,
    /// The retry policy's minimum backoff [default: 10]
    #[arg(long, value_name = "TIME", value_parser = time)]
    min_backoff: Option<Duration>,
    /// The retry policy's maximum backoff [default: 600]
    #[arg(long, value_name = "TIME", value_parser = time)]
    max_backoff: Option<Duration>,
    /// The dead-letter policy's maximum of delivery attempts [default: 12]
    #[arg(long, value_name = "N")]
    max_delivery_attempts: Option<u32>,
    /// How long the subscription keeps a message that is not acked [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = time)]
    retention: Option<Duration>,
    /// How many holders a message may find before it, each for a whole lease [default: 1]
    #[arg(long, value_name = "N")]
    holders_ahead: Option<u32>,
    /// How short a backoff may turn out, as a share of what it should be [default: 0.5]
    #[arg(long, value_name = "SHARE")]
    floor_ratio: Option<f64>,
    /// How many attempts are kept for real failures [default: 1]
    #[arg(long, value_name = "N")]
    real_failures: Option<u32>,
}

/// The numbers that a plan says itself.
const OF_A_PLAN: [&str; 6] =
    ["request_timeout", "ack_deadline", "min_backoff", "max_backoff", "max_delivery_attempts", "retention"];

impl Check {
    /// # Errors
    /// Why the plan could not be read, or has nothing to check.
    pub(crate) fn run(&self) -> Result<Answer, Failed> {
        let checked = match &self.plan {
            None => vec![Checked::numbers(&self.over(Sizing::default()))],
            Some(path) => {
                let named = |error: Failed| format!("{}: {error}", path.display());
                let plan = read(path).and_then(|text| Plan::read(&text)).map_err(named)?;
                deployment::check(&plan, &|sizing| self.over(sizing)).map_err(named)?
            }
        };
        let refused = [("refused", true), ("warned", self.strict), ("unknown", self.known)];
        let refused: Vec<_> = refused.iter().filter(|(_, is)| *is).map(|(severity, _)| *severity).collect();
        let report = Report::of(checked, &refused);
        let text = if self.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() };
        Ok(Answer { text, refused: report.refused })
    }

    /// The sizing with what was given instead.
    fn over(&self, mut sizing: Sizing) -> Sizing {
        fn set<T: Copy>(field: &mut T, given: Option<T>) {
            *field = given.unwrap_or(*field);
        }
        set(&mut sizing.lease, self.lease);
        set(&mut sizing.ttl, self.ttl);
        set(&mut sizing.request_timeout, self.request_timeout);
        set(&mut sizing.ack_deadline, self.ack_deadline);
        set(&mut sizing.min_backoff, self.min_backoff);
        set(&mut sizing.max_backoff, self.max_backoff);
        set(&mut sizing.max_delivery_attempts, self.max_delivery_attempts);
        set(&mut sizing.retention, self.retention);
        set(&mut sizing.holders_ahead, self.holders_ahead);
        set(&mut sizing.floor_ratio, self.floor_ratio);
        set(&mut sizing.real_failures, self.real_failures);
        sizing
    }
}

fn read(path: &Path) -> Result<String, Failed> {
    let input: Box<dyn Read> =
        if path == Path::new("-") { Box::new(io::stdin().lock()) } else { Box::new(File::open(path)?) };
    let mut text = String::new();
    input.take(LARGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(format!("larger than {} MiB: no plan", LARGEST / 1024 / 1024).into());
    }
    Ok(text)
}

/// `900`, `900s`, `15m`, `1h` or `7d`.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    };
    let seconds = unit.and_then(|unit| digits.parse::<u64>().ok()?.checked_mul(unit));
    seconds.map(Duration::from_secs).ok_or_else(|| "expected a time as 900, 900s, 15m, 1h or 7d".to_owned())
}
