# A push subscription with all that it needs, in one file.

terraform {
  required_providers {
    google = { source = "hashicorp/google" }
  }
}

provider "google" {
  project = "shop-1"
  region  = "europe-west1"
}

locals {
  lease_seconds         = 900
  ttl_seconds           = 604800
  request_timeout       = 570
  max_delivery_attempts = 12
  audience              = "https://orders.example"
}

data "google_project" "this" {
  project_id = "shop-1"
}

resource "google_service_account" "push" {
  account_id = "orders-push"
}

resource "google_cloud_run_v2_service" "orders" {
  name             = "orders"
  location         = "europe-west1"
  custom_audiences = [local.audience]

  template {
    timeout = "${local.request_timeout}s"
    containers {
      image = "europe-docker.pkg.dev/shop-1/images/orders:1"
      dynamic "env" {
        for_each = {
          LEASE_SECONDS           = local.lease_seconds
          TTL_SECONDS             = local.ttl_seconds
          REQUEST_TIMEOUT_SECONDS = local.request_timeout
          MAX_DELIVERY_ATTEMPTS   = local.max_delivery_attempts
          PUSH_AUTH               = "platform"
          PUSH_AUDIENCE           = local.audience
          PUSH_SERVICE_ACCOUNT    = google_service_account.push.email
        }
        content {
          name  = env.key
          value = env.value
        }
      }
    }
  }
}

resource "google_cloud_run_v2_service_iam_member" "push" {
  name     = google_cloud_run_v2_service.orders.name
  location = google_cloud_run_v2_service.orders.location
  role     = "roles/run.invoker"
  member   = google_service_account.push.member
}

resource "google_pubsub_topic" "orders" {
  name = "orders"
}

resource "google_pubsub_topic" "dead" {
  name = "orders-dead"
}

resource "google_pubsub_subscription" "orders" {
  name                       = "orders-push"
  topic                      = google_pubsub_topic.orders.id
  ack_deadline_seconds       = 600
  message_retention_duration = "604800s"

  push_config {
    push_endpoint = "${google_cloud_run_v2_service.orders.uri}/orders"
    oidc_token {
      service_account_email = google_service_account.push.email
      audience              = local.audience
    }
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead.id
    max_delivery_attempts = local.max_delivery_attempts
  }

  expiration_policy {
    ttl = ""
  }
}

resource "google_pubsub_subscription" "dead" {
  name                       = "orders-dead"
  topic                      = google_pubsub_topic.dead.id
  message_retention_duration = "2678400s"

  expiration_policy {
    ttl = ""
  }
}

resource "google_pubsub_topic_iam_member" "dead" {
  topic  = google_pubsub_topic.dead.id
  role   = "roles/pubsub.publisher"
  member = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

resource "google_pubsub_subscription_iam_member" "orders" {
  subscription = google_pubsub_subscription.orders.id
  role         = "roles/pubsub.subscriber"
  member       = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}
