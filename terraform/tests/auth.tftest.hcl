# Who may push: the two modes, and what is refused.

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

run "platform_by_default" {
  command = plan

  assert {
    condition = (
      one([for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value if env.name == "PUSH_AUTH"]) == "platform"
      && one([for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value if env.name == "PUSH_SERVICE_ACCOUNT"]) == google_service_account.push.email
    )
    error_message = "the service checks the claims, of the push account"
  }
  assert {
    condition = (
      one([for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value if env.name == "PUSH_AUDIENCE"]) == "https://orders.europe-west1.shop-prod.internal"
      && google_pubsub_subscription.push[0].push_config[0].oidc_token[0].audience == "https://orders.europe-west1.shop-prod.internal"
      && google_cloud_run_v2_service.this.custom_audiences == tolist(["https://orders.europe-west1.shop-prod.internal"])
    )
    error_message = "token, Cloud Run and service have one audience"
  }
}

run "another_audience_is_another_everywhere" {
  command = plan
  variables {
    audience       = "orders"
    more_audiences = ["https://orders-abc-ew.a.run.app", "billing"]
  }

  assert {
    condition = (
      one([for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value if env.name == "PUSH_AUDIENCE"]) == "orders,https://orders-abc-ew.a.run.app,billing"
      && google_pubsub_subscription.push[0].push_config[0].oidc_token[0].audience == "orders"
      && google_cloud_run_v2_service.this.custom_audiences == tolist(["orders", "billing"])
    )
    error_message = "token, Cloud Run and service have one audience"
  }
}

run "verify_with_a_grant_to_all" {
  command = plan
  variables {
    auth   = "verify"
    public = "all-users"
  }

  assert {
    condition     = one([for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value if env.name == "PUSH_AUTH"]) == "verify"
    error_message = "the service checks the signature"
  }
  assert {
    condition     = google_cloud_run_v2_service_iam_member.public_invoker[0].member == "allUsers" && google_cloud_run_v2_service_iam_member.public_invoker[0].role == "roles/run.invoker"
    error_message = "public, as asked for"
  }
}

run "verify_without_a_grant_to_all" {
  command = plan
  variables {
    auth   = "verify"
    public = "check-disabled"
  }

  assert {
    condition     = google_cloud_run_v2_service.this.invoker_iam_disabled && length(google_cloud_run_v2_service_iam_member.public_invoker) == 0
    error_message = "the check is off, and nothing is granted"
  }
}

run "platform_on_a_public_service_is_refused" {
  command = plan
  variables {
    public = "all-users"
  }
  expect_failures = [var.public]
}

run "verify_behind_cloud_runs_own_check_is_refused" {
  command = plan
  variables {
    auth = "verify"
  }
  expect_failures = [var.public]
}

run "no_auth_is_no_choice" {
  command = plan
  variables {
    auth = "none"
  }
  expect_failures = [var.auth]
}
