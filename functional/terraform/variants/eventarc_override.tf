# The example with an Eventarc trigger, and its dead letters in another project.
module "orders" {
  trigger             = "eventarc"
  dead_letter_project = "offline-letters"
}
