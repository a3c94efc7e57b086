# The store of the keys: a Firestore database in Datastore mode, unless the caller names another.

locals {
  # Null: it comes from a secret.
  store = local.datastore ? "datastore://${var.project}/${local.database}" : var.store
}

resource "google_firestore_database" "keys" {
  count = local.datastore ? 1 : 0

  project     = var.project
  name        = local.database
  location_id = coalesce(var.database_location, var.region)
  type        = "DATASTORE_MODE"

  # A transaction that a frozen instance holds must not block the claims of others.
  concurrency_mode            = "OPTIMISTIC"
  app_engine_integration_mode = "DISABLED"

  delete_protection_state = var.deletion_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  # Protected, it outlives a destroy: what was done would be done again without it.
  deletion_policy = var.deletion_protection ? "ABANDON" : "DELETE"

  depends_on = [google_project_service.api]
}

# The TTL policy deletes what has expired, within about a day; no answer depends on it. gcloud, since the
# resource below sends a field with it that a database in Datastore mode refuses
# (https://github.com/hashicorp/terraform-provider-google/issues/15781).
resource "terraform_data" "ttl_policy" {
  count = local.datastore && var.ttl_policy == "gcloud" ? 1 : 0

  triggers_replace = [google_firestore_database.keys[0].id, local.kind]

  provisioner "local-exec" {
    command = "gcloud firestore fields ttls update expires_at --collection-group=${local.kind} --database=${local.database} --enable-ttl --project=${var.project} --async --quiet"
  }
}

resource "google_firestore_field" "expires_at" {
  count = local.datastore && var.ttl_policy == "terraform" ? 1 : 0

  project    = var.project
  database   = google_firestore_database.keys[0].name
  collection = local.kind
  field      = "expires_at"

  ttl_config {}
}
