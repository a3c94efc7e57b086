# Instead of the push subscription: an Eventarc trigger, which makes one of its own.

resource "google_eventarc_trigger" "this" {
  count = local.eventarc ? 1 : 0

  project         = var.project
  location        = var.region
  name            = var.name
  labels          = var.labels
  service_account = google_service_account.push.email

  matching_criteria {
    attribute = "type"
    value     = "google.cloud.pubsub.topic.v1.messagePublished"
  }

  transport {
    pubsub {
      topic = local.topic
    }
  }

  destination {
    cloud_run_service {
      service = google_cloud_run_v2_service.this.name
      region  = var.region
      path    = var.path
    }
  }

  depends_on = [
    google_project_service.api,
    google_cloud_run_v2_service_iam_member.push_invoker,
    google_cloud_run_v2_service_iam_member.public_invoker,
    google_service_account_iam_member.push_token_creator,
  ]
}

locals {
  # Its last part, also where Eventarc says projects/PROJECT/subscriptions/SUBSCRIPTION.
  eventarc_subscription = local.eventarc ? basename(google_eventarc_trigger.this[0].transport[0].pubsub[0].subscription) : null

  subscription = local.pubsub ? google_pubsub_subscription.push[0].name : local.eventarc_subscription
}

# Eventarc makes the subscription with an ack deadline of 10 s, a retention of a day, an expiry and no
# dead-letter policy, and its API has no word for any of them. Google's way is to change the subscription.
resource "terraform_data" "eventarc_subscription" {
  count = local.eventarc && var.eventarc_subscription == "gcloud" ? 1 : 0

  triggers_replace = [local.eventarc_subscription, local.eventarc_settings]

  provisioner "local-exec" {
    command = "gcloud pubsub subscriptions update ${local.eventarc_subscription} ${local.eventarc_settings} --quiet"
  }

  depends_on = [
    google_pubsub_topic_iam_member.dead_letter_publisher,
    google_pubsub_subscription_iam_member.eventarc_subscriber,
  ]
}

locals {
  eventarc_settings = join(" ", [
    "--project=${var.project}",
    "--ack-deadline=${module.sizing.ack_deadline_seconds}",
    "--message-retention-duration=${module.sizing.retention_seconds}s",
    "--expiration-period=never",
    "--min-retry-delay=${module.sizing.min_backoff_seconds}s",
    "--max-retry-delay=${module.sizing.max_backoff_seconds}s",
    "--dead-letter-topic=projects/${local.dead_letter_project}/topics/${google_pubsub_topic.dead_letter.name}",
    "--max-delivery-attempts=${module.sizing.max_delivery_attempts}",
  ])
}
