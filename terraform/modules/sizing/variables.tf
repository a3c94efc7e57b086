# The times of a service and of its push subscription, named as in the table of cases. The defaults are
# those of the crate's `Sizing`. Null means the default, so that a caller can pass its own variables on.

variable "lease_seconds" {
  description = "How long a claim holds its key while the work runs."
  type        = number
  default     = 900
  nullable    = false
}

variable "ttl_seconds" {
  description = "How long a done key is remembered."
  type        = number
  default     = 604800
  nullable    = false
}

variable "request_timeout_seconds" {
  description = "Cloud Run's request timeout."
  type        = number
  default     = 570
  nullable    = false
}

variable "ack_deadline_seconds" {
  description = "The subscription's ack deadline: how long Pub/Sub waits for the answer to a push."
  type        = number
  default     = 600
  nullable    = false
}

variable "min_backoff_seconds" {
  description = "The retry policy's minimum backoff."
  type        = number
  default     = 10
  nullable    = false
}

variable "max_backoff_seconds" {
  description = "The retry policy's maximum backoff."
  type        = number
  default     = 600
  nullable    = false
}

variable "max_delivery_attempts" {
  description = "The dead-letter policy's maximum of delivery attempts."
  type        = number
  default     = 12
  nullable    = false
}

variable "retention_seconds" {
  description = "How long the subscription keeps a message that is not acked."
  type        = number
  default     = 604800
  nullable    = false
}

variable "holders_ahead" {
  description = "How many holders a message may find before it, one after the other, each for a whole lease."
  type        = number
  default     = 1
  nullable    = false
}

variable "floor_ratio" {
  description = "How short a delay of Pub/Sub may turn out, as a share of what it should be: its backoff is best effort."
  type        = number
  default     = 0.5
  nullable    = false

  validation {
    condition     = var.floor_ratio > 0 && var.floor_ratio <= 1
    error_message = "floor_ratio is a share: above 0, at most 1."
  }
}

variable "real_failures" {
  description = "How many attempts are kept for failures that are none of contention."
  type        = number
  default     = 1
  nullable    = false
}

variable "wrong_sizing" {
  description = "What a broken rule does: refuse the plan, warn (as PUSHONCE_SIZING=warn does to the service), or report, which leaves it to whoever reads the output `broken`."
  type        = string
  default     = "refuse"
  nullable    = false

  validation {
    condition     = contains(["refuse", "warn", "report"], var.wrong_sizing)
    error_message = "wrong_sizing is refuse, warn or report."
  }
}
