# Who may do what, each with its reason. Members, never bindings: a binding would take away what others granted.

# Pub/Sub calls the service as the push account; Cloud Run lets in whom this names.
resource "google_cloud_run_v2_service_iam_member" "push_invoker" {
  project  = var.project
  location = var.region
  name     = google_cloud_run_v2_service.this.name
  role     = "roles/run.invoker"
  member   = "serviceAccount:${google_service_account.push.email}"
}

# The same for whoever else is expected.
resource "google_cloud_run_v2_service_iam_member" "more_invokers" {
  for_each = toset(var.more_push_accounts)

  project  = var.project
  location = var.region
  name     = google_cloud_run_v2_service.this.name
  role     = "roles/run.invoker"
  member   = "serviceAccount:${each.value}"
}

# Only if asked for: with auth = verify the service checks the token itself, and must get it as it was signed.
resource "google_cloud_run_v2_service_iam_member" "public_invoker" {
  count = var.public == "all-users" ? 1 : 0

  project  = var.project
  location = var.region
  name     = google_cloud_run_v2_service.this.name
  role     = "roles/run.invoker"
  member   = "allUsers"
}

# Pub/Sub publishes the dead letters itself. Without this and the next nothing is ever dead-lettered, no
# attempt is counted, and nobody is told.
resource "google_pubsub_topic_iam_member" "dead_letter_publisher" {
  project = local.dead_letter_project
  topic   = google_pubsub_topic.dead_letter.name
  role    = "roles/pubsub.publisher"
  member  = local.pubsub_agent
}

# Pub/Sub acks what it has dead-lettered, on the subscription that it came from.
resource "google_pubsub_subscription_iam_member" "source_subscriber" {
  count = local.pubsub ? 1 : 0

  project      = var.project
  subscription = google_pubsub_subscription.push[0].name
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent

  lifecycle {
    # A new subscription of the same name has none of the grants of the old one.
    replace_triggered_by = [google_pubsub_subscription.push[0].id]
  }
}

# The same, on the subscription that Eventarc made.
resource "google_pubsub_subscription_iam_member" "eventarc_subscriber" {
  count = local.eventarc ? 1 : 0

  project      = var.project
  subscription = local.eventarc_subscription
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}

# Pub/Sub signs the push token as the push account. Since 8 April 2021 its service agent may do so anyway;
# before, it needs this, on that one account.
resource "google_service_account_iam_member" "push_token_creator" {
  count = var.grant_token_creator ? 1 : 0

  service_account_id = google_service_account.push.name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = local.pubsub_agent
}

# The service reads and writes keys, in its own database and no other. Not after the database: the grant
# takes its time to be known, and so does making the database.
resource "google_project_iam_member" "datastore_user" {
  count = local.datastore ? 1 : 0

  project = var.project
  role    = "roles/datastore.user"
  member  = "serviceAccount:${google_service_account.run.email}"

  condition {
    title      = "${var.name} keys"
    expression = "resource.name == \"projects/${var.project}/databases/${local.database}\""
  }
}

# The service reads the address of its store.
resource "google_secret_manager_secret_iam_member" "store" {
  count = var.store_secret == null ? 0 : 1

  secret_id = var.store_secret
  role      = "roles/secretmanager.secretAccessor"
  member    = "serviceAccount:${google_service_account.run.email}"
}
