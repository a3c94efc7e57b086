# Whether the times fit together: the rules and the formula of the crate's `Sizing`, without a provider.
#
# A message whose key is held is nacked, at t_1 = 0 and then at t_{k+1} = t_k + d_k, where
# d_k = min(M, m * 2^(k-1)). In a window H it burns K(H) = the number of t_k below H. The first n delays
# double and end at T = m * (2^n - 1); all later ones are M long. So K(H) counts the doubling ones below H,
# and then one for each M that is begun after T. Whole numbers all along: no logarithm, no rounding.

locals {
  # A backoff below a second is refused below; until then it must not divide by zero.
  m = max(1, var.min_backoff_seconds)
  M = max(1, var.max_backoff_seconds)

  held_for  = var.holders_ahead * var.lease_seconds
  doublings = length([for i in range(32) : i if local.m * pow(2, i) < local.M])

  # With delays as they should be, and cut as short as they may turn out.
  burned = { for name, share in { exact = 1, short = var.floor_ratio } : name =>
    length([for i in range(local.doublings) : i if share * local.m * (pow(2, i) - 1) < local.held_for])
    + max(0, ceil((local.held_for - share * local.m * (pow(2, local.doublings) - 1)) / (share * local.M)))
  }

  # Those burned, the one that works, and the real failures.
  needed = local.burned.short + 1 + var.real_failures

  # Every backoff, and every ack deadline waited for.
  attempts     = max(0, var.max_delivery_attempts)
  doubled      = min(local.attempts, local.doublings)
  all_attempts = local.m * (pow(2, local.doubled) - 1) + (local.attempts - local.doubled) * local.M + local.attempts * var.ack_deadline_seconds
}

locals {
  rules = {
    lease = {
      broken = var.lease_seconds <= var.request_timeout_seconds
      why    = "a lease of ${var.lease_seconds} s lapses while a request of ${var.request_timeout_seconds} s may still run, and a redelivery would run beside it. Make the lease longer, or the request timeout shorter."
    }
    window = {
      broken = var.lease_seconds + var.ttl_seconds <= 3600
      why    = "lease and ttl are ${var.lease_seconds + var.ttl_seconds} s together, and a request on Cloud Run can take 3600 s: its repeat could find the key forgotten. Make the ttl longer."
    }
    attempts = {
      broken = var.max_delivery_attempts < 5 || var.max_delivery_attempts > 100 || var.max_delivery_attempts < local.needed
      why    = "${var.max_delivery_attempts} delivery attempts, and ${local.needed} are needed: a key held for ${local.held_for} s burns ${local.burned.short} of them, one works, ${var.real_failures} may fail. Pub/Sub takes 5 to 100. Set more, or make the lease shorter or the backoff longer."
    }
    ack-deadline = {
      broken = var.ack_deadline_seconds < 10 || var.ack_deadline_seconds > 600 || var.ack_deadline_seconds < var.request_timeout_seconds
      why    = "an ack deadline of ${var.ack_deadline_seconds} s with a request timeout of ${var.request_timeout_seconds} s. Pub/Sub takes 10 to 600 s, and what runs longer than the deadline is delivered again while it runs: the deadline must not be below the timeout."
    }
    retention = {
      broken = var.retention_seconds < 600 || var.retention_seconds > 2678400 || var.retention_seconds <= local.all_attempts
      why    = "a retention of ${var.retention_seconds} s, and ${var.max_delivery_attempts} attempts can take ${local.all_attempts} s: a message would expire instead of being dead-lettered. Pub/Sub takes 600 s to 31 days."
    }
    backoff = {
      broken = var.min_backoff_seconds < 1 || var.min_backoff_seconds > var.max_backoff_seconds || var.max_backoff_seconds > 600
      why    = "a backoff of ${var.min_backoff_seconds} to ${var.max_backoff_seconds} s. It begins at 1 s or more, ends at 600 s or less, and the minimum is not above the maximum."
    }
  }

  broken = { for id, rule in local.rules : id => "${id}: ${rule.why}" if rule.broken }
  warned = var.ttl_seconds < var.retention_seconds ? {
    ttl = "ttl: a done key is forgotten after ${var.ttl_seconds} s, and Pub/Sub can deliver its message for ${var.retention_seconds} s: a late redelivery runs again. Make the ttl as long as the retention."
  } : {}
}

# One for each rule, so that a plan that is refused names each that is broken.
resource "terraform_data" "rule" {
  for_each = local.rules

  lifecycle {
    precondition {
      condition     = var.wrong_sizing != "refuse" || !contains(keys(local.broken), each.key)
      error_message = try(local.broken[each.key], each.key)
    }
  }
}

check "ttl" {
  assert {
    condition     = var.wrong_sizing == "report" || length(local.warned) == 0
    error_message = join("\n", values(local.warned))
  }
}

check "rules" {
  assert {
    condition     = var.wrong_sizing != "warn" || length(local.broken) == 0
    error_message = join("\n", values(local.broken))
  }
}
