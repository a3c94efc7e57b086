# The service: CPU, memory, probes, ingress, environment.

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

run "defaults" {
  command = plan

  assert {
    condition     = google_cloud_run_v2_service.this.template[0].containers[0].resources[0].cpu_idle == true && google_cloud_run_v2_service.this.template[0].containers[0].resources[0].startup_cpu_boost == true
    error_message = "CPU while a request is active"
  }
  assert {
    condition     = tomap(google_cloud_run_v2_service.this.template[0].containers[0].resources[0].limits) == tomap({ cpu = "1", memory = "512Mi" })
    error_message = "memory for the layer's budget of 256 MiB"
  }
  assert {
    condition = (
      google_cloud_run_v2_service.this.template[0].containers[0].startup_probe[0].http_get[0].path == "/healthz"
      && google_cloud_run_v2_service.this.template[0].containers[0].startup_probe[0].period_seconds == 1
      && google_cloud_run_v2_service.this.template[0].containers[0].liveness_probe[0].http_get[0].path == "/healthz"
    )
    error_message = "both probes ask /healthz"
  }
  assert {
    condition     = google_cloud_run_v2_service.this.ingress == "INGRESS_TRAFFIC_ALL" && google_cloud_run_v2_service.this.deletion_protection == true
    error_message = "reachable, and protected"
  }
  assert {
    condition = (
      google_cloud_run_v2_service.this.template[0].max_instance_request_concurrency == 40
      && google_cloud_run_v2_service.this.template[0].scaling[0].min_instance_count == 0
      && google_cloud_run_v2_service.this.template[0].scaling[0].max_instance_count == 20
    )
    error_message = "concurrency and instances"
  }
  assert {
    condition     = alltrue([for api in google_project_service.api : api.disable_on_destroy == false]) && contains(keys(google_project_service.api), "run")
    error_message = "APIs outlive the module"
  }
}

run "detached_work_keeps_the_cpu" {
  command = plan
  variables {
    detached_work = true
  }

  assert {
    condition     = google_cloud_run_v2_service.this.template[0].containers[0].resources[0].cpu_idle == false
    error_message = "CPU always"
  }
}

run "no_image_keeps_the_one_that_runs" {
  command = plan
  variables {
    image = null
  }

  override_data {
    target = data.google_cloud_run_v2_service.running
    values = {
      template = [{ containers = [{ image = "rolled/out@sha256:11" }] }]
    }
  }

  assert {
    condition     = google_cloud_run_v2_service.this.template[0].containers[0].image == "rolled/out@sha256:11"
    error_message = "the image that something else rolled out"
  }
}

run "internal" {
  command = plan
  variables {
    ingress = "internal"
    network = { network = "default", subnetwork = "default" }
  }

  assert {
    condition     = google_cloud_run_v2_service.this.ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY" && google_cloud_run_v2_service.this.template[0].vpc_access[0].network_interfaces[0].network == "default"
    error_message = "internal ingress, and a way into the network"
  }
}

run "a_wrong_sizing_that_is_let_through_is_told_to_the_service" {
  command = plan
  variables {
    wrong_sizing = "warn"
  }

  assert {
    condition     = one([for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.value if env.name == "PUSHONCE_SIZING"]) == "warn"
    error_message = "else it would not start"
  }
}

run "less_memory_than_the_budget_needs_is_refused" {
  command = plan
  variables {
    memory_mib = 256
  }
  expect_failures = [var.memory_mib]
}

run "a_lower_budget_needs_less" {
  command = plan
  variables {
    memory_mib      = 256
    body_budget_mib = 128
  }

  assert {
    condition     = google_cloud_run_v2_service.this.template[0].containers[0].resources[0].limits.memory == "256Mi"
    error_message = "memory"
  }
}

run "always_on_cpu_needs_512_mib" {
  command = plan
  variables {
    memory_mib      = 256
    body_budget_mib = 128
    detached_work   = true
  }
  expect_failures = [var.memory_mib]
}

run "a_number_cannot_be_set_beside_the_module" {
  command = plan
  variables {
    environment = { LEASE_SECONDS = "60" }
  }
  expect_failures = [google_cloud_run_v2_service.this]
}
