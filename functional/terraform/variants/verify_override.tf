# The example with the other choice of each pair.
module "orders" {
  auth                  = "verify"
  public                = "all-users"
  payload               = "unwrapped"
  filter                = "attributes.kind = \"order\""
  ordering              = true
  detached_work         = true
  ttl_policy            = "terraform"
  grant_token_creator   = true
  ingress               = "internal"
  execution_environment = "gen2"
  deletion_protection   = false
}
