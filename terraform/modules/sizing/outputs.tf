output "lease_seconds" {
  description = "How long a claim holds its key."
  value       = var.lease_seconds
}

output "ttl_seconds" {
  description = "How long a done key is remembered."
  value       = var.ttl_seconds
}

output "request_timeout_seconds" {
  description = "Cloud Run's request timeout."
  value       = var.request_timeout_seconds
}

output "ack_deadline_seconds" {
  description = "The subscription's ack deadline."
  value       = var.ack_deadline_seconds
}

output "min_backoff_seconds" {
  description = "The retry policy's minimum backoff."
  value       = var.min_backoff_seconds
}

output "max_backoff_seconds" {
  description = "The retry policy's maximum backoff."
  value       = var.max_backoff_seconds
}

output "max_delivery_attempts" {
  description = "The dead-letter policy's maximum of delivery attempts."
  value       = var.max_delivery_attempts
}

output "retention_seconds" {
  description = "How long the subscription keeps a message that is not acked."
  value       = var.retention_seconds
}

output "held_for_seconds" {
  description = "How long a key can be held by others: holders ahead, each for a whole lease."
  value       = local.held_for
}

output "burned_exact" {
  description = "The attempts that a held key burns if every delay is as long as it should be."
  value       = local.burned.exact
}

output "burned" {
  description = "The attempts that it burns if every delay is cut to floor_ratio."
  value       = local.burned.short
}

output "needed" {
  description = "The delivery attempts that are needed."
  value       = local.needed
}

output "all_attempts_seconds" {
  description = "How long all attempts take at the longest; after that a message that nobody acks is dead-lettered."
  value       = local.all_attempts
}

output "broken" {
  description = "The rules that are broken, by their ids. Where it is not empty, the plan is refused unless wrong_sizing says otherwise."
  value       = local.broken
}

output "warned" {
  description = "The rules whose breach is a warning only."
  value       = local.warned
}
