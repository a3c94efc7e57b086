# Each grant: to whom, what, and on what.

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

run "the_push_account_invokes_the_service_and_nobody_else" {
  command = plan

  assert {
    condition = (
      google_cloud_run_v2_service_iam_member.push_invoker.role == "roles/run.invoker"
      && google_cloud_run_v2_service_iam_member.push_invoker.member == "serviceAccount:${google_service_account.push.email}"
      && google_cloud_run_v2_service_iam_member.push_invoker.name == google_cloud_run_v2_service.this.name
    )
    error_message = "run.invoker for the push account"
  }
  assert {
    condition     = length(google_cloud_run_v2_service_iam_member.public_invoker) == 0 && google_cloud_run_v2_service.this.invoker_iam_disabled == false
    error_message = "the service is not public"
  }
}

run "the_accounts_of_other_subscriptions_are_let_in_where_they_are_named" {
  command = plan
  variables {
    more_push_accounts = ["billing-push@shop-prod.iam.gserviceaccount.com"]
  }

  assert {
    condition = (
      one(values(google_cloud_run_v2_service_iam_member.more_invokers)).role == "roles/run.invoker"
      && one(values(google_cloud_run_v2_service_iam_member.more_invokers)).member == "serviceAccount:billing-push@shop-prod.iam.gserviceaccount.com"
      && one(values(google_cloud_run_v2_service_iam_member.more_invokers)).name == google_cloud_run_v2_service.this.name
    )
    error_message = "run.invoker for the further account"
  }
  assert {
    condition     = one([for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value if env.name == "PUSH_SERVICE_ACCOUNT"]) == "${google_service_account.push.email},billing-push@shop-prod.iam.gserviceaccount.com"
    error_message = "the service expects both accounts"
  }
}

run "pubsub_may_dead_letter" {
  command = plan

  assert {
    condition = (
      google_pubsub_topic_iam_member.dead_letter_publisher.role == "roles/pubsub.publisher"
      && google_pubsub_topic_iam_member.dead_letter_publisher.topic == google_pubsub_topic.dead_letter.name
      && google_pubsub_topic_iam_member.dead_letter_publisher.member == "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
    )
    error_message = "pubsub.publisher on the dead-letter topic for the agent, by the project's number"
  }
  assert {
    condition = (
      google_pubsub_subscription_iam_member.source_subscriber[0].role == "roles/pubsub.subscriber"
      && google_pubsub_subscription_iam_member.source_subscriber[0].subscription == google_pubsub_subscription.push[0].name
      && google_pubsub_subscription_iam_member.source_subscriber[0].member == "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
    )
    error_message = "pubsub.subscriber on the source subscription for the agent, by the project's number"
  }
}

run "across_projects_the_agent_is_that_of_the_subscription" {
  command = plan
  variables {
    dead_letter_project = "shop-letters"
  }

  assert {
    condition = (
      google_pubsub_topic_iam_member.dead_letter_publisher.project == "shop-letters"
      && google_pubsub_topic_iam_member.dead_letter_publisher.member == "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
      && google_pubsub_topic.dead_letter.project == "shop-letters"
      && google_pubsub_subscription.dead_letter.project == "shop-letters"
    )
    error_message = "topic, subscription and grant are in the other project"
  }
  assert {
    condition     = google_pubsub_subscription_iam_member.source_subscriber[0].project == "shop-prod" && data.google_project.this.project_id == "shop-prod"
    error_message = "the subscriber grant is where the source subscription is"
  }
}

run "the_service_reads_its_own_database_only" {
  command = plan

  assert {
    condition = (
      google_project_iam_member.datastore_user[0].role == "roles/datastore.user"
      && google_project_iam_member.datastore_user[0].member == "serviceAccount:${google_service_account.run.email}"
      && google_project_iam_member.datastore_user[0].condition[0].expression == "resource.name == \"projects/shop-prod/databases/${google_firestore_database.keys[0].name}\""
    )
    error_message = "datastore.user on the one database"
  }
  assert {
    condition     = google_service_account.run.email != google_service_account.push.email && google_cloud_run_v2_service.this.template[0].service_account == google_service_account.run.email
    error_message = "the service runs as an account of its own"
  }
}

run "no_token_creator_by_default" {
  command = plan

  assert {
    condition     = length(google_service_account_iam_member.push_token_creator) == 0
    error_message = "not granted unless asked for"
  }
}

run "token_creator_on_the_push_account_if_asked_for" {
  command = plan
  variables {
    grant_token_creator = true
  }

  assert {
    condition = (
      google_service_account_iam_member.push_token_creator[0].role == "roles/iam.serviceAccountTokenCreator"
      && google_service_account_iam_member.push_token_creator[0].service_account_id == google_service_account.push.name
      && google_service_account_iam_member.push_token_creator[0].member == "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
    )
    error_message = "on that one account, not on the project"
  }
}

run "a_secret_is_read_by_the_service" {
  command = plan
  variables {
    store_secret = "projects/shop-prod/secrets/redis-address"
  }

  assert {
    condition = (
      google_secret_manager_secret_iam_member.store[0].role == "roles/secretmanager.secretAccessor"
      && google_secret_manager_secret_iam_member.store[0].secret_id == "projects/shop-prod/secrets/redis-address"
      && google_secret_manager_secret_iam_member.store[0].member == "serviceAccount:${google_service_account.run.email}"
    )
    error_message = "secretAccessor on the one secret"
  }
  assert {
    condition     = length(google_project_iam_member.datastore_user) == 0
    error_message = "no grant on a database that there is not"
  }
}
