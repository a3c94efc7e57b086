output "service_name" {
  description = "The name of the Cloud Run service."
  value       = google_cloud_run_v2_service.this.name
}

output "service_uri" {
  description = "The address of the service."
  value       = google_cloud_run_v2_service.this.uri
}

output "topic" {
  description = "The topic, as projects/PROJECT/topics/TOPIC."
  value       = local.topic
}

output "subscription" {
  description = "The name of the subscription that pushes."
  value       = local.subscription
}

output "dead_letter_topic" {
  description = "The dead-letter topic, as projects/PROJECT/topics/TOPIC."
  value       = google_pubsub_topic.dead_letter.id
}

output "dead_letter_subscription" {
  description = "The subscription that keeps the dead letters."
  value       = google_pubsub_subscription.dead_letter.id
}

output "run_service_account" {
  description = "The account that the service runs as: grant it what your handler needs."
  value       = google_service_account.run.email
}

output "push_service_account" {
  description = "The account that the push token names."
  value       = google_service_account.push.email
}

output "audience" {
  description = "The audience of the push token."
  value       = local.audience
}

output "store" {
  description = "The address of the store; null where it is a secret."
  value       = local.store
}

output "sizing" {
  description = "The times, and what the formula says of them."
  value       = module.sizing
}

output "alerts" {
  description = "The alerts, by the headings of the runbook."
  value       = { for key, alert in merge(google_monitoring_alert_policy.metric, google_monitoring_alert_policy.log) : key => alert.id }
}
