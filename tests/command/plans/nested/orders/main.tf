# A push subscription to a service that is deployed elsewhere.

terraform {
  required_providers {
    google = { source = "hashicorp/google" }
  }
}

variable "name" {
  type = string
}

variable "dead" {
  type = string
}

resource "google_pubsub_topic" "this" {
  name = var.name
}

resource "google_service_account" "push" {
  account_id = "${var.name}-push"
}

resource "google_pubsub_subscription" "this" {
  count                = 1
  name                 = var.name
  topic                = google_pubsub_topic.this.id
  ack_deadline_seconds = 600

  push_config {
    push_endpoint = "https://orders.example/orders"
    oidc_token {
      service_account_email = google_service_account.push.email
      audience              = "https://orders.example"
    }
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  dead_letter_policy {
    dead_letter_topic     = var.dead
    max_delivery_attempts = 12
  }

  expiration_policy {
    ttl = ""
  }
}

output "subscription" {
  value = one(google_pubsub_subscription.this[*].id)
}
