# The Cloud Run service.

# What the service may do is what this account may do; the default account may do nearly everything.
resource "google_service_account" "run" {
  project      = var.project
  account_id   = "${var.name}-run"
  display_name = "${var.name}: runs the service"

  depends_on = [google_project_service.api]
}

data "google_cloud_run_v2_service" "running" {
  count = var.image == null ? 1 : 0

  project  = var.project
  location = var.region
  name     = var.name
}

locals {
  environment = {
    LEASE_SECONDS           = module.sizing.lease_seconds
    TTL_SECONDS             = module.sizing.ttl_seconds
    REQUEST_TIMEOUT_SECONDS = module.sizing.request_timeout_seconds
    ACK_DEADLINE_SECONDS    = module.sizing.ack_deadline_seconds
    MIN_BACKOFF_SECONDS     = module.sizing.min_backoff_seconds
    MAX_BACKOFF_SECONDS     = module.sizing.max_backoff_seconds
    MAX_DELIVERY_ATTEMPTS   = module.sizing.max_delivery_attempts
    RETENTION_SECONDS       = module.sizing.retention_seconds

    PUSH_AUTH            = var.auth
    PUSH_AUDIENCE        = join(",", concat([local.audience], var.more_audiences))
    PUSH_SERVICE_ACCOUNT = join(",", concat([google_service_account.push.email], var.more_push_accounts))

    GOOGLE_CLOUD_PROJECT = var.project
    RUST_LOG             = var.log_filter
  }

  # By their presence: a store in the environment, or as a reference to a secret; the switch, only if thrown.
  environment_if = merge(
    local.store == null ? {} : { PUSHONCE_STORE = local.store },
    var.wrong_sizing == "warn" ? { PUSHONCE_SIZING = "warn" } : {},
  )
}

resource "google_cloud_run_v2_service" "this" {
  project             = var.project
  location            = var.region
  name                = var.name
  labels              = var.labels
  deletion_protection = var.deletion_protection

  ingress              = var.ingress == "all" ? "INGRESS_TRAFFIC_ALL" : "INGRESS_TRAFFIC_INTERNAL_ONLY"
  invoker_iam_disabled = var.public == "check-disabled"
  # Its own addresses Cloud Run accepts by itself.
  custom_audiences = concat([local.audience], [for audience in var.more_audiences : audience if !endswith(audience, ".run.app")])

  template {
    service_account                  = google_service_account.run.email
    timeout                          = "${module.sizing.request_timeout_seconds}s"
    max_instance_request_concurrency = var.concurrency
    execution_environment            = "EXECUTION_ENVIRONMENT_${upper(var.execution_environment)}"

    scaling {
      min_instance_count = var.min_instances
      max_instance_count = var.max_instances
    }

    containers {
      image = coalesce(var.image, one(data.google_cloud_run_v2_service.running[*].template[0].containers[0].image))

      ports {
        container_port = 8080
      }

      resources {
        limits = {
          cpu    = tostring(var.cpu)
          memory = "${var.memory_mib}Mi"
        }
        # Must be written: where there are resources and not this, CPU is always on, and billed.
        cpu_idle          = !var.detached_work
        startup_cpu_boost = true
      }

      dynamic "env" {
        for_each = merge(local.environment, local.environment_if, var.environment)
        content {
          name  = env.key
          value = tostring(env.value)
        }
      }

      dynamic "env" {
        for_each = var.store_secret == null ? [] : [var.store_secret]
        content {
          name = "PUSHONCE_STORE"
          value_source {
            secret_key_ref {
              secret  = env.value
              version = var.store_secret_version
            }
          }
        }
      }

      startup_probe {
        period_seconds    = 1
        timeout_seconds   = 1
        failure_threshold = 60
        http_get {
          path = "/healthz"
        }
      }

      # It does not ask the store: an outage of the store must not restart the fleet.
      liveness_probe {
        period_seconds    = 10
        timeout_seconds   = 5
        failure_threshold = 3
        http_get {
          path = "/healthz"
        }
      }
    }

    dynamic "vpc_access" {
      for_each = var.network == null ? [] : [var.network]
      content {
        egress = "PRIVATE_RANGES_ONLY"
        network_interfaces {
          network    = vpc_access.value.network
          subnetwork = vpc_access.value.subnetwork
        }
      }
    }
  }

  lifecycle {
    # gcloud writes its own name there with each roll-out.
    ignore_changes = [client, client_version]

    precondition {
      condition     = length(setintersection(keys(var.environment), concat(keys(local.environment), ["PUSHONCE_STORE", "PUSHONCE_SIZING"]))) == 0
      error_message = "environment: the module sets ${join(", ", setintersection(keys(var.environment), concat(keys(local.environment), ["PUSHONCE_STORE", "PUSHONCE_SIZING"])))} itself, from the numbers that the subscription has too."
    }
  }

  # The service asks its store as it starts, and ends where it may not.
  depends_on = [
    google_project_service.api,
    google_firestore_database.keys,
    google_project_iam_member.datastore_user,
    google_secret_manager_secret_iam_member.store,
  ]
}
