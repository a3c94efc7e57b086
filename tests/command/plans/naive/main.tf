# What looks complete, and loses messages.

terraform {
  required_providers {
    google = { source = "hashicorp/google" }
  }
}

provider "google" {
  project = "shop-1"
}

resource "google_service_account" "push" {
  account_id = "orders-push"
}

resource "google_cloud_run_v2_service" "orders" {
  name     = "orders"
  location = "europe-west1"

  template {
    timeout = "900s"
    containers {
      image = "europe-docker.pkg.dev/shop-1/images/orders:1"
      env {
        name  = "LEASE_SECONDS"
        value = "1800"
      }
      env {
        name  = "REQUEST_TIMEOUT_SECONDS"
        value = "900"
      }
      env {
        name  = "PUSH_SERVICE_ACCOUNT"
        value = google_service_account.push.email
      }
    }
  }
}

resource "google_pubsub_topic" "orders" {
  name = "orders"
}

resource "google_pubsub_topic" "dead" {
  name = "orders-dead"
}

resource "google_pubsub_subscription" "orders" {
  name  = "orders-push"
  topic = google_pubsub_topic.orders.id

  push_config {
    push_endpoint = "${google_cloud_run_v2_service.orders.uri}/orders"
    oidc_token {
      service_account_email = google_service_account.push.email
    }
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead.id
    max_delivery_attempts = 5
  }
}
