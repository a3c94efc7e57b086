//! What a simulation tells: each delivery, and what became of each message.

use std::fmt;
use std::time::Duration;

use super::dead_letter::DeadLetter;
use crate::testing::Answer;

/// What a [`PushSimulator`](super::PushSimulator) has done so far. Printed, it is a readable trace.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SimulationReport {
    /// The ids of the messages that were acked, in the order of their acks.
    pub acked: Vec<String>,
    /// The messages that were forwarded to the dead-letter topic, in that order.
    pub dead_letters: Vec<DeadLetter>,
    /// The ids of the messages that the retention ended: neither acked nor dead-lettered.
    pub expired: Vec<String>,
    /// The ids of the messages that are not settled: the run was ended by its time or its limit.
    pub open: Vec<String>,
    /// Every delivery, in the order of sending.
    pub deliveries: Vec<Attempt>,
    /// The time since the simulator was made.
    pub elapsed: Duration,
}

impl SimulationReport {
    /// The deliveries of one message.
    pub fn of(&self, message_id: &str) -> impl Iterator<Item = &Attempt> {
        self.deliveries.iter().filter(move |attempt| attempt.message_id == message_id)
    }

    /// Whether every message was acked, and none dead-lettered, expired or left open.
    pub fn all_acked(&self) -> bool {
        self.dead_letters.is_empty() && self.expired.is_empty() && self.open.is_empty()
    }
}

impl fmt::Display for SimulationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} acked, {} dead-lettered, {} expired, {} open; {} deliveries in {:.3} s",
            self.acked.len(),
            self.dead_letters.len(),
            self.expired.len(),
            self.open.len(),
            self.deliveries.len(),
            self.elapsed.as_secs_f64(),
        )?;
        self.deliveries.iter().try_for_each(|attempt| writeln!(f, "{attempt}"))?;
        let letters = &self.dead_letters;
        letters.iter().try_for_each(|letter| {
            let DeadLetter { message_id, attempts, at, .. } = letter;
            writeln!(f, "{:>12.3} s  {message_id} dead-lettered after {attempts}", at.as_secs_f64())
        })?;
        self.expired.iter().try_for_each(|id| writeln!(f, "{id} expired"))?;
        self.open.iter().try_for_each(|id| writeln!(f, "{id} is open"))
    }
}

/// One delivery of a message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Attempt {
    /// The message's id.
    pub message_id: String,
    /// Its ordering key.
    pub ordering_key: Option<String>,
    /// 1 and the nacks of the message before it. Sent as `deliveryAttempt` only with a dead-letter policy.
    pub number: u32,
    /// When it was sent, since the simulator was made.
    pub sent: Duration,
    /// When it ended, since the simulator was made; `None` while it has no answer yet.
    pub ended: Option<Duration>,
    /// How it ended.
    pub ending: Ending,
    /// What the service answered, also where that was lost on its way.
    pub answer: Option<Answer>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.3} s  {} #{}", self.sent.as_secs_f64(), self.message_id, self.number)?;
        if let Some(answer) = &self.answer {
            write!(f, " {}", answer.status.as_u16())?;
            if let Some(outcome) = answer.outcome {
                write!(f, " {outcome}")?;
            }
        }
        match self.ended.map(|ended| ended.saturating_sub(self.sent)) {
            Some(took) if !took.is_zero() => write!(f, ", {} after {:.3} s", self.ending, took.as_secs_f64()),
            _ => write!(f, ", {}", self.ending),
        }
    }
}

/// How a delivery ended, as Pub/Sub sees it. All but [`Acked`](Self::Acked) and [`Open`](Self::Open) count
/// as a nack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It is still unanswered.
    Open,
    /// Answered with a status that acks.
    Acked,
    /// Answered with another status.
    Nacked,
    /// Not answered by the ack deadline: the caller hung up.
    Deadline,
    /// The connection broke before an answer ([`PushFault::HangUp`](super::PushFault::HangUp)).
    HungUp,
    /// It was answered, but nobody heard it.
    AnswerLost,
    /// It never came to the service.
    RequestLost,
    /// The service failed instead of answering.
    Broken(String),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("unanswered"),
            Self::Acked => f.write_str("acked"),
            Self::Nacked => f.write_str("nacked"),
            Self::Deadline => f.write_str("over its ack deadline"),
            Self::HungUp => f.write_str("hung up on"),
            Self::AnswerLost => f.write_str("answer lost"),
            Self::RequestLost => f.write_str("request lost"),
            Self::Broken(why) => write!(f, "broken: {why}"),
        }
    }
}
