# The topic, and the subscription that pushes its messages to the service.

resource "google_pubsub_topic" "this" {
  count = var.topic == null ? 1 : 0

  project = var.project
  name    = var.name
  labels  = var.labels

  depends_on = [google_project_service.api]
}

locals {
  topic = coalesce(var.topic, one(google_pubsub_topic.this[*].id))
}

# Whom the push token names. It has no role but to invoke the service.
resource "google_service_account" "push" {
  project      = var.project
  account_id   = "${var.name}-push"
  display_name = "${var.name}: pushes to the service"

  depends_on = [google_project_service.api]
}

resource "google_pubsub_subscription" "push" {
  count = local.pubsub ? 1 : 0

  project = var.project
  name    = "${var.name}-push"
  topic   = local.topic
  labels  = var.labels

  ack_deadline_seconds       = module.sizing.ack_deadline_seconds
  message_retention_duration = "${module.sizing.retention_seconds}s"
  filter                     = var.filter
  enable_message_ordering    = var.ordering

  # Never: a subscription that is idle for 31 days is deleted by default, with what it should have caught.
  expiration_policy {
    ttl = ""
  }

  # Without this block redelivery is immediate, and a held key burns every attempt within seconds.
  retry_policy {
    minimum_backoff = "${module.sizing.min_backoff_seconds}s"
    maximum_backoff = "${module.sizing.max_backoff_seconds}s"
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead_letter.id
    max_delivery_attempts = module.sizing.max_delivery_attempts
  }

  push_config {
    # The service's own run.app address: with internal ingress it is the only one that Pub/Sub reaches.
    push_endpoint = "${google_cloud_run_v2_service.this.uri}${var.path}"

    oidc_token {
      service_account_email = google_service_account.push.email
      audience              = local.audience
    }

    dynamic "no_wrapper" {
      for_each = var.payload == "unwrapped" ? [true] : []
      content {
        # Without it nobody knows the message's id, so no message has a key.
        write_metadata = true
      }
    }
  }

  # A push that Cloud Run refuses burns an attempt.
  depends_on = [
    google_cloud_run_v2_service_iam_member.push_invoker,
    google_cloud_run_v2_service_iam_member.public_invoker,
    google_service_account_iam_member.push_token_creator,
    google_pubsub_topic_iam_member.dead_letter_publisher,
  ]
}
