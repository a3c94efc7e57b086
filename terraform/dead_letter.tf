# Where a message goes that is not acked in all its attempts.

resource "google_pubsub_topic" "dead_letter" {
  project = local.dead_letter_project
  name    = "${var.name}-dead-letter"
  labels  = var.labels

  depends_on = [google_project_service.api]
}

# A topic keeps nothing: what is published without a subscription is lost.
resource "google_pubsub_subscription" "dead_letter" {
  project = local.dead_letter_project
  name    = "${var.name}-dead-letter"
  topic   = google_pubsub_topic.dead_letter.id
  labels  = var.labels

  ack_deadline_seconds = 60
  # 31 days, the longest: it waits for people.
  message_retention_duration = "2678400s"

  # Never: it is meant to be idle.
  expiration_policy {
    ttl = ""
  }
}
