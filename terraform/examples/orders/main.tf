# The service `orders` of this repository, deployed: `terraform init && terraform apply`.

terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.50, < 9.0"
    }
  }
}

variable "project" {
  description = "The project's id."
  type        = string
}

variable "region" {
  description = "The region."
  type        = string
  default     = "europe-west1"
}

variable "image" {
  description = "The image of the Dockerfile at the root of this repository, by digest. Without it the service keeps the image that it has."
  type        = string
  default     = null
}

variable "supplier_url" {
  description = "Where each order is sent, as http://host:port/path. Without it nothing is sent."
  type        = string
  default     = null
}

variable "email" {
  description = "Who is told of an alert. Without it alerts only open incidents."
  type        = string
  default     = null
}

variable "runbook_url" {
  description = "Where your copy of docs/runbook.md is to be read; each alert links its heading there."
  type        = string
  default     = "docs/runbook.md"
}

variable "deletion_protection" {
  description = "Whether the service and the database are protected from a destroy."
  type        = bool
  default     = true
}

provider "google" {
  project = var.project
  region  = var.region
}

resource "google_monitoring_notification_channel" "email" {
  count = var.email == null ? 0 : 1

  display_name = "orders"
  type         = "email"
  labels       = { email_address = var.email }
}

module "orders" {
  source = "../.."

  project = var.project
  region  = var.region
  image   = var.image

  name                  = "orders"
  path                  = "/orders"
  environment           = var.supplier_url == null ? {} : { SUPPLIER_URL = var.supplier_url }
  deletion_protection   = var.deletion_protection
  notification_channels = google_monitoring_notification_channel.email[*].name
  runbook_url           = var.runbook_url
}

output "orders" {
  description = "What to publish to, where dead letters are, and the numbers."
  value = {
    topic                    = module.orders.topic
    subscription             = module.orders.subscription
    service_uri              = module.orders.service_uri
    dead_letter_subscription = module.orders.dead_letter_subscription
    run_service_account      = module.orders.run_service_account
    sizing                   = module.orders.sizing
  }
}
