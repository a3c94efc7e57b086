terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source = "hashicorp/google"
      # The two ends whose schemas the module is checked against.
      version = ">= 6.50, < 9.0"
    }
  }
}
