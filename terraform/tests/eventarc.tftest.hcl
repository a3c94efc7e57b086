# An Eventarc trigger instead of the subscription.

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

run "a_trigger_and_no_subscription_of_ours" {
  command = plan
  variables {
    trigger = "eventarc"
    path    = "/orders"
  }

  assert {
    condition     = length(google_pubsub_subscription.push) == 0 && length(google_pubsub_subscription_iam_member.source_subscriber) == 0
    error_message = "no subscription of ours"
  }
  assert {
    condition = (
      one(google_eventarc_trigger.this[0].matching_criteria).value == "google.cloud.pubsub.topic.v1.messagePublished"
      && google_eventarc_trigger.this[0].transport[0].pubsub[0].topic == google_pubsub_topic.this[0].id
      && google_eventarc_trigger.this[0].destination[0].cloud_run_service[0].service == google_cloud_run_v2_service.this.name
      && google_eventarc_trigger.this[0].destination[0].cloud_run_service[0].path == "/orders"
      && google_eventarc_trigger.this[0].service_account == google_service_account.push.email
    )
    error_message = "from the topic to the service, as the push account"
  }
  assert {
    condition = (
      google_pubsub_subscription_iam_member.eventarc_subscriber[0].subscription == basename(google_eventarc_trigger.this[0].transport[0].pubsub[0].subscription)
      && google_pubsub_subscription_iam_member.eventarc_subscriber[0].role == "roles/pubsub.subscriber"
      && google_pubsub_subscription_iam_member.eventarc_subscriber[0].member == "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
    )
    error_message = "pubsub.subscriber on Eventarc's subscription for the agent, by the project's number"
  }
  assert {
    condition     = contains(keys(google_project_service.api), "eventarc")
    error_message = "its API is enabled"
  }
  assert {
    condition     = strcontains(google_monitoring_alert_policy.metric["backlog-too-old"].conditions[0].condition_threshold[0].filter, "\"${basename(google_eventarc_trigger.this[0].transport[0].pubsub[0].subscription)}\"")
    error_message = "the alerts look at Eventarc's subscription"
  }
}

run "its_subscription_is_brought_to_our_numbers" {
  command = plan
  variables {
    trigger = "eventarc"
  }

  assert {
    condition     = length(terraform_data.eventarc_subscription) == 1
    error_message = "by gcloud"
  }
  assert {
    condition = local.eventarc_settings == join(" ", [
      "--project=shop-prod",
      "--ack-deadline=600",
      "--message-retention-duration=604800s",
      "--expiration-period=never",
      "--min-retry-delay=10s",
      "--max-retry-delay=600s",
      "--dead-letter-topic=projects/shop-prod/topics/orders-dead-letter",
      "--max-delivery-attempts=12",
    ])
    error_message = local.eventarc_settings
  }
}

run "or_left_as_it_is" {
  command = plan

  variables {
    trigger               = "eventarc"
    eventarc_subscription = "none"
  }

  assert {
    condition     = length(terraform_data.eventarc_subscription) == 0
    error_message = "not by gcloud"
  }
}

run "what_eventarc_cannot_is_refused" {
  command = plan
  variables {
    trigger  = "eventarc"
    payload  = "unwrapped"
    filter   = "attributes.kind = \"order\""
    ordering = true
  }
  expect_failures = [var.payload, var.filter, var.ordering]
}
