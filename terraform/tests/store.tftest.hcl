# The store: a database of our own, or an address, or a secret.

mock_provider "google" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  project = "shop-prod"
  region  = "europe-west1"
  image   = "europe-west1-docker.pkg.dev/shop-prod/images/orders@sha256:00"
  name    = "orders"
}

run "a_database_in_datastore_mode" {
  command = plan

  assert {
    condition = (
      google_firestore_database.keys[0].type == "DATASTORE_MODE"
      && google_firestore_database.keys[0].concurrency_mode == "OPTIMISTIC"
      && google_firestore_database.keys[0].app_engine_integration_mode == "DISABLED"
      && google_firestore_database.keys[0].location_id == "europe-west1"
    )
    error_message = "Datastore mode, optimistic"
  }
  assert {
    condition     = google_firestore_database.keys[0].delete_protection_state == "DELETE_PROTECTION_ENABLED" && google_firestore_database.keys[0].deletion_policy == "ABANDON"
    error_message = "it outlives a destroy"
  }
  assert {
    condition     = one([for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value if env.name == "PUSHONCE_STORE"]) == "datastore://shop-prod/${google_firestore_database.keys[0].name}"
    error_message = "the service is told its address"
  }
  assert {
    condition     = contains(keys(google_project_service.api), "firestore") && contains(keys(google_project_service.api), "datastore")
    error_message = "its APIs are enabled"
  }
}

run "unprotected_it_goes_with_a_destroy" {
  command = plan
  variables {
    deletion_protection = false
    database_location   = "eur3"
  }

  assert {
    condition     = google_firestore_database.keys[0].delete_protection_state == "DELETE_PROTECTION_DISABLED" && google_firestore_database.keys[0].deletion_policy == "DELETE" && google_firestore_database.keys[0].location_id == "eur3"
    error_message = "no protection"
  }
}

run "the_ttl_policy_by_gcloud" {
  command = plan

  assert {
    condition     = length(terraform_data.ttl_policy) == 1 && length(google_firestore_field.expires_at) == 0
    error_message = "one policy"
  }
}

run "the_ttl_policy_by_terraform" {
  command = plan
  variables {
    ttl_policy = "terraform"
  }

  assert {
    condition = (
      length(terraform_data.ttl_policy) == 0
      && google_firestore_field.expires_at[0].field == "expires_at"
      && google_firestore_field.expires_at[0].collection == "pushonce"
      && google_firestore_field.expires_at[0].database == google_firestore_database.keys[0].name
      && length(google_firestore_field.expires_at[0].ttl_config) == 1
    )
    error_message = "on our kind and database"
  }
}

run "no_ttl_policy" {
  command = plan

  variables {
    ttl_policy = "none"
  }

  assert {
    condition     = length(terraform_data.ttl_policy) == 0 && length(google_firestore_field.expires_at) == 0
    error_message = "none"
  }
}

run "an_address_instead" {
  command = plan
  variables {
    store = "redis://10.0.0.3:6379"
  }

  assert {
    condition     = one([for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value if env.name == "PUSHONCE_STORE"]) == "redis://10.0.0.3:6379"
    error_message = "the service is told the address"
  }
  assert {
    condition     = length(google_firestore_database.keys) == 0 && length(google_project_iam_member.datastore_user) == 0 && !contains(keys(google_project_service.api), "firestore")
    error_message = "no database"
  }
}

run "a_secret_instead" {
  command = plan
  variables {
    store_secret         = "projects/shop-prod/secrets/redis-address"
    store_secret_version = "3"
  }

  assert {
    condition     = [for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value_source[0].secret_key_ref[0] if env.name == "PUSHONCE_STORE"] == [{ secret = "projects/shop-prod/secrets/redis-address", version = "3" }]
    error_message = "one reference to the secret, and no address"
  }
  assert {
    condition     = length(google_firestore_database.keys) == 0 && contains(keys(google_project_service.api), "secretmanager")
    error_message = "no database"
  }
}

run "a_password_in_the_settings_is_refused" {
  command = plan
  variables {
    store = "redis://user:hunter2@10.0.0.3:6379"
  }
  expect_failures = [var.store]
}

run "two_stores_are_refused" {
  command = plan
  variables {
    store        = "redis://10.0.0.3:6379"
    store_secret = "projects/shop-prod/secrets/redis-address"
  }
  expect_failures = [var.store]
}
