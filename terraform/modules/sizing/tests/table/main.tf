# Every case of the table that the Rust tests and the push simulator read too, each against the module.

locals {
  cases = { for case in jsondecode(file("${path.module}/../../../../../tests/sizing/cases.json")) : case.name => case }
}

module "sizing" {
  source   = "../.."
  for_each = local.cases

  lease_seconds           = each.value.sizing.lease_seconds
  ttl_seconds             = each.value.sizing.ttl_seconds
  request_timeout_seconds = each.value.sizing.request_timeout_seconds
  ack_deadline_seconds    = each.value.sizing.ack_deadline_seconds
  min_backoff_seconds     = each.value.sizing.min_backoff_seconds
  max_backoff_seconds     = each.value.sizing.max_backoff_seconds
  max_delivery_attempts   = each.value.sizing.max_delivery_attempts
  retention_seconds       = each.value.sizing.retention_seconds
  holders_ahead           = try(each.value.sizing.holders_ahead, null)
  floor_ratio             = try(each.value.sizing.floor_ratio, null)
  real_failures           = try(each.value.sizing.real_failures, null)
  wrong_sizing            = "report"
}

output "cases" {
  value = length(local.cases)
}

# Which rules some case breaks: a rule that none breaks is not tested.
output "rules" {
  value = toset(flatten([for case in local.cases : concat(case.refused, case.warned)]))
}

output "differences" {
  value = [for name, case in local.cases : "${name}: expected ${jsonencode(local.expected[name])}, found ${jsonencode(local.found[name])}" if local.expected[name] != local.found[name]]
}

locals {
  expected = { for name, case in local.cases : name => {
    numbers = [case.burned_exact, case.burned, case.needed]
    refused = join(" ", sort(case.refused))
    warned  = join(" ", sort(case.warned))
  } }
  found = { for name, case in module.sizing : name => {
    numbers = [case.burned_exact, case.burned, case.needed]
    refused = join(" ", sort(keys(case.broken)))
    warned  = join(" ", sort(keys(case.warned)))
  } }
}
