# A module for each region, and values that go through variables, outputs and locals before they arrive.

terraform {
  required_providers {
    google = { source = "hashicorp/google" }
  }
}

provider "google" {
  project = "shop-1"
}

data "google_project" "this" {
  project_id = "shop-1"
}

locals {
  agent = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
  # What a local refers to, a plan does not say.
  dead = google_pubsub_topic.dead["eu"].id
}

resource "google_pubsub_topic" "dead" {
  for_each = toset(["eu", "us"])
  name     = "dead-${each.key}"
}

module "orders" {
  source   = "./orders"
  for_each = google_pubsub_topic.dead

  name = "orders-${each.key}"
  dead = each.value.id
}

module "local" {
  source = "./orders"

  name = "orders-local"
  dead = local.dead
}

# The United States are forgotten.
resource "google_pubsub_subscription" "dead" {
  name  = "dead-eu"
  topic = google_pubsub_topic.dead["eu"].id

  expiration_policy {
    ttl = ""
  }
}

resource "google_pubsub_topic_iam_binding" "dead" {
  for_each = google_pubsub_topic.dead
  topic    = google_pubsub_topic.dead[each.key].name
  role     = "roles/pubsub.publisher"
  members  = [local.agent, "group:operators@example.com"]
}

resource "google_pubsub_subscription_iam_member" "orders" {
  for_each     = module.orders
  subscription = each.value.subscription
  role         = "roles/pubsub.subscriber"
  member       = local.agent
}

resource "google_pubsub_subscription_iam_member" "local" {
  subscription = module.local.subscription
  role         = "roles/pubsub.subscriber"
  member       = local.agent
}
