# The numbers, once: the service's environment, the subscription and the alerts all take them from here.

module "sizing" {
  source = "./modules/sizing"

  lease_seconds           = var.lease_seconds
  ttl_seconds             = var.ttl_seconds
  request_timeout_seconds = var.request_timeout_seconds
  ack_deadline_seconds    = var.ack_deadline_seconds
  min_backoff_seconds     = var.min_backoff_seconds
  max_backoff_seconds     = var.max_backoff_seconds
  max_delivery_attempts   = var.max_delivery_attempts
  retention_seconds       = var.retention_seconds
  holders_ahead           = var.holders_ahead
  real_failures           = var.real_failures
  wrong_sizing            = var.wrong_sizing
}

# For the number in the name of Pub/Sub's service agent.
data "google_project" "this" {
  project_id = var.project
}

locals {
  # A custom audience instead of the service's URL, which is known only after the service is made, and the
  # service is told the audience in its environment. The token and the service take it from here.
  audience = coalesce(var.audience, "https://${var.name}.${var.region}.${replace(var.project, ":", ".")}.internal")

  # Of the subscription's project, also where the dead-letter topic is in another. By its number, not its id.
  pubsub_agent = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"

  pubsub              = var.trigger == "pubsub"
  eventarc            = var.trigger == "eventarc"
  dead_letter_project = coalesce(var.dead_letter_project, var.project)

  # A store of our own, unless the caller names one.
  datastore = var.store == null && var.store_secret == null
  database  = "${var.name}-keys"
  kind      = "pushonce"
}

locals {
  apis = toset(concat(
    ["run", "pubsub", "iam", "monitoring", "logging"],
    local.eventarc ? ["eventarc"] : [],
    # Datastore's API answers for a database in Datastore mode, Firestore's makes it.
    local.datastore ? ["firestore", "datastore"] : [],
    var.store_secret == null ? [] : ["secretmanager"],
  ))
}

resource "google_project_service" "api" {
  for_each = var.enable_apis ? local.apis : []

  project = var.project
  service = "${each.key}.googleapis.com"
  # Others in the project may use it.
  disable_on_destroy = false
}
