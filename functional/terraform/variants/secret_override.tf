# The example with a Redis whose address is a secret, on a topic that exists.
module "orders" {
  store_secret        = "projects/offline-project/secrets/redis-address"
  network             = { network = "default", subnetwork = "default" }
  topic               = "projects/elsewhere/topics/orders"
  dead_letter_project = "offline-letters"
  auth                = "verify"
  public              = "check-disabled"
}
