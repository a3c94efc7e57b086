# What a caller may say. Three are needed; the defaults of the others are meant to be deployed.

variable "project" {
  description = "The id of the project of the service, its topic and its subscription."
  type        = string
}

variable "region" {
  description = "The region of the service, and of the database."
  type        = string
}

variable "image" {
  description = "The container's image, by digest. Null keeps the image that the service has: for whoever rolls out by Cloud Build and applies only the rest."
  type        = string

  validation {
    condition     = var.image == null || can(regex("^\\S+/\\S+$", var.image))
    error_message = "image is the address of an image, as REGION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE@sha256:DIGEST."
  }
}

variable "name" {
  description = "The name of the service, and the beginning of all other names."
  type        = string
  default     = "pushonce"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,23}[a-z0-9]$", var.name))
    error_message = "name is 3 to 25 characters: small letters, digits and hyphens, a letter first, no hyphen last."
  }
}

variable "labels" {
  description = "Labels of the service, the topics and the subscriptions."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "enable_apis" {
  description = "Whether the module enables the APIs that it needs. They stay enabled when it is destroyed."
  type        = bool
  default     = true
  nullable    = false
}

variable "deletion_protection" {
  description = "Whether Terraform refuses to delete the service, and Google the database."
  type        = bool
  default     = true
  nullable    = false
}

# --- The push -----------------------------------------------------------------------------------------

variable "trigger" {
  description = "What delivers: pubsub, a push subscription of ours, or eventarc, a trigger that makes one. A change deletes the subscription, with what waits in it."
  type        = string
  default     = "pubsub"
  nullable    = false

  validation {
    condition     = contains(["pubsub", "eventarc"], var.trigger)
    error_message = "trigger is pubsub or eventarc."
  }
}

variable "path" {
  description = "The path of the service that takes the pushes."
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = startswith(var.path, "/")
    error_message = "path begins with a slash."
  }
}

variable "topic" {
  description = "An existing topic, as projects/PROJECT/topics/TOPIC, written out: its id is not known when a plan counts. Null makes one. Another one makes a new subscription, and what waits in the old one is lost."
  type        = string
  default     = null

  validation {
    condition     = var.topic == null || can(regex("^projects/[^/]+/topics/[^/]+$", var.topic))
    error_message = "topic is projects/PROJECT/topics/TOPIC."
  }
}

variable "payload" {
  description = "wrapped: JSON with the message inside. unwrapped: the data alone, the rest in x-goog-pubsub-* headers."
  type        = string
  default     = "wrapped"
  nullable    = false

  validation {
    condition     = contains(["wrapped", "unwrapped"], var.payload)
    error_message = "payload is wrapped or unwrapped."
  }
  validation {
    condition     = var.payload == "wrapped" || var.trigger == "pubsub"
    error_message = "Eventarc has no unwrapped payload: leave it wrapped, or take the trigger pubsub."
  }
}

variable "filter" {
  description = "Which messages are delivered, in Pub/Sub's filter syntax. It cannot be changed later without a new subscription."
  type        = string
  default     = null

  validation {
    condition     = var.filter == null || var.trigger == "pubsub"
    error_message = "Eventarc's trigger takes no filter of attributes: take the trigger pubsub."
  }
}

variable "ordering" {
  description = "Whether messages with one ordering key come in order. A nack then holds back the key's later messages. A change makes a new subscription, and what waits in the old one is lost."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.ordering || var.trigger == "pubsub"
    error_message = "Eventarc's trigger does not order: take the trigger pubsub."
  }
}

variable "eventarc_subscription" {
  description = "How Eventarc's subscription is brought to the numbers of this module: gcloud (run where Terraform runs), or none."
  type        = string
  default     = "gcloud"
  nullable    = false

  validation {
    condition     = contains(["gcloud", "none"], var.eventarc_subscription)
    error_message = "eventarc_subscription is gcloud or none."
  }
}

variable "dead_letter_project" {
  description = "The project of the dead-letter topic and its subscription, with the APIs of Pub/Sub and Monitoring enabled. Null: the service's."
  type        = string
  default     = null
}

# --- Who may push -------------------------------------------------------------------------------------

variable "auth" {
  description = "Who checks the push token's signature: platform, Cloud Run before the request comes in, or verify, the service itself."
  type        = string
  default     = "platform"
  nullable    = false

  validation {
    condition     = contains(["platform", "verify"], var.auth)
    error_message = "auth is platform or verify."
  }
}

variable "public" {
  description = "How requests without Cloud Run's own check are let in: no, all-users (a grant), or check-disabled (where the organisation forbids that grant)."
  type        = string
  default     = "no"
  nullable    = false

  validation {
    condition     = contains(["no", "all-users", "check-disabled"], var.public)
    error_message = "public is no, all-users or check-disabled."
  }
  validation {
    condition     = var.public == "no" || var.auth == "verify"
    error_message = "With auth = platform nobody checks the signature on a public service: anybody could push. Leave public = no, or take auth = verify."
  }
  validation {
    condition     = var.public != "no" || var.auth == "platform"
    error_message = "Cloud Run removes the signature of each token that it has checked, so auth = verify needs a public service: say public = all-users or check-disabled, or take auth = platform."
  }
}

variable "audience" {
  description = "The audience of the push token. Null: a name of the service's own. It is compared, never dialled."
  type        = string
  default     = null
}

variable "more_audiences" {
  description = "Further audiences that the service accepts: for Eventarc the service's URL, the output service_uri."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "more_push_accounts" {
  description = "E-mails of further service accounts that may push: those of other subscriptions. They may invoke the service, too."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "grant_token_creator" {
  description = "Whether Pub/Sub's service agent is granted to make tokens of the push account: in projects in which Pub/Sub was enabled before 8 April 2021."
  type        = bool
  default     = false
  nullable    = false
}

variable "ingress" {
  description = "From where requests may come: all, or internal (Pub/Sub, Eventarc and other callers of the same project or VPC Service Controls perimeter)."
  type        = string
  default     = "all"
  nullable    = false

  validation {
    condition     = contains(["all", "internal"], var.ingress)
    error_message = "ingress is all or internal."
  }
}

# --- The service --------------------------------------------------------------------------------------

variable "cpu" {
  description = "CPUs of an instance."
  type        = number
  default     = 1
  nullable    = false
}

variable "memory_mib" {
  description = "Memory of an instance."
  type        = number
  default     = 512
  nullable    = false

  validation {
    condition     = var.memory_mib >= 2 * var.body_budget_mib
    error_message = "The layer buffers bodies of ${var.body_budget_mib} MiB, and ${var.memory_mib} MiB of memory are less than twice that. Give more memory, or lower the layer's body_budget and body_budget_mib with it."
  }
  validation {
    condition     = var.memory_mib >= 512 || (!var.detached_work && var.execution_environment == "gen1")
    error_message = "Cloud Run takes less than 512 MiB only in gen1, and not with CPU that is always on."
  }
}

variable "body_budget_mib" {
  description = "What the layer may buffer in bodies at a time. It must be what the service sets with body_budget."
  type        = number
  default     = 256
  nullable    = false
}

variable "concurrency" {
  description = "Requests of an instance at a time: 40 where handlers wait for others, 1 where they compute."
  type        = number
  default     = 40
  nullable    = false
}

variable "min_instances" {
  description = "Instances that are kept."
  type        = number
  default     = 0
  nullable    = false
}

variable "max_instances" {
  description = "Instances at the most. Where there are too few, Cloud Run answers 429 or 500, and each burns a delivery attempt."
  type        = number
  default     = 20
  nullable    = false
}

variable "execution_environment" {
  description = "gen1 starts faster; gen2 has full Linux."
  type        = string
  default     = "gen1"
  nullable    = false

  validation {
    condition     = contains(["gen1", "gen2"], var.execution_environment)
    error_message = "execution_environment is gen1 or gen2."
  }
}

variable "detached_work" {
  description = "Whether an instance keeps its CPU when no request is active, so that work whose caller hung up, and what is still to be stored after an answer, goes on. It is billed all the time."
  type        = bool
  default     = false
  nullable    = false
}

variable "environment" {
  description = "Further variables of the service."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "log_filter" {
  description = "RUST_LOG of the service. The alerts on events read these logs: with error there is no attempts-running-out, and with off none of them."
  type        = string
  default     = "info"
  nullable    = false
}

variable "network" {
  description = "A VPC network through which the service reaches private addresses, such as Memorystore's."
  type = object({
    network    = string
    subnetwork = string
  })
  default = null
}

# --- The store ----------------------------------------------------------------------------------------

variable "store" {
  description = "The address of a store that exists, as redis://HOST or datastore://PROJECT/DATABASE. Null, and no store_secret: a Datastore database is made."
  type        = string
  default     = null

  validation {
    condition     = var.store == null || !can(regex("^[a-z]+://[^/@]*:[^/@]*@", var.store))
    error_message = "This address has a password, and would stand in the service's settings for all to read. Put it into Secret Manager and name it in store_secret."
  }
  validation {
    condition     = var.store == null || var.store_secret == null
    error_message = "store and store_secret name the same thing: one of them."
  }
}

variable "store_secret" {
  description = "A secret of Secret Manager whose value is the store's address, as projects/PROJECT/secrets/SECRET."
  type        = string
  default     = null

  validation {
    condition     = var.store_secret == null || can(regex("^projects/[^/]+/secrets/[^/]+$", var.store_secret))
    error_message = "store_secret is projects/PROJECT/secrets/SECRET."
  }
}

variable "store_secret_version" {
  description = "The version of the secret. With latest, a new version is seen by new instances only."
  type        = string
  default     = "latest"
  nullable    = false
}

variable "database_location" {
  description = "The location of the database: a region, or a multi-region such as eur3. Null: the service's region. It cannot be changed."
  type        = string
  default     = null
}

variable "ttl_policy" {
  description = "How the database's TTL policy is set: gcloud (run where Terraform runs), terraform (google_firestore_field, which Datastore mode refuses today), or none. It only collects garbage."
  type        = string
  default     = "gcloud"
  nullable    = false

  validation {
    condition     = contains(["gcloud", "terraform", "none"], var.ttl_policy)
    error_message = "ttl_policy is gcloud, terraform or none."
  }
}

# --- The times: defaults and rules are in modules/sizing ------------------------------------------------

variable "lease_seconds" {
  description = "How long a claim holds its key while the work runs. Default 900."
  type        = number
  default     = null
}

variable "ttl_seconds" {
  description = "How long a done key is remembered. Default 7 days."
  type        = number
  default     = null
}

variable "request_timeout_seconds" {
  description = "Cloud Run's request timeout. Default 570."
  type        = number
  default     = null
}

variable "ack_deadline_seconds" {
  description = "How long Pub/Sub waits for the answer to a push. Default 600, the longest."
  type        = number
  default     = null
}

variable "min_backoff_seconds" {
  description = "The retry policy's minimum backoff. Default 10."
  type        = number
  default     = null
}

variable "max_backoff_seconds" {
  description = "The retry policy's maximum backoff. Default 600."
  type        = number
  default     = null
}

variable "max_delivery_attempts" {
  description = "After how many attempts a message is dead-lettered. Default 12."
  type        = number
  default     = null
}

variable "retention_seconds" {
  description = "How long the subscription keeps a message that is not acked. Default 7 days."
  type        = number
  default     = null
}

variable "holders_ahead" {
  description = "How many holders a message may find before it, each for a whole lease. Default 1: one that crashed."
  type        = number
  default     = null

  validation {
    condition     = var.holders_ahead == null || try(var.holders_ahead >= 1, false)
    error_message = "holders_ahead is 1 or more: the service counts with 1, and would not start."
  }
}

variable "real_failures" {
  description = "How many attempts are kept for failures that are none of contention. Default 1."
  type        = number
  default     = null

  validation {
    condition     = var.real_failures == null || try(var.real_failures >= 1, false)
    error_message = "real_failures is 1 or more: the service counts with 1, and would not start."
  }
}

variable "wrong_sizing" {
  description = "What a broken rule does: refuse the plan, or warn. The service is told the same."
  type        = string
  default     = "refuse"
  nullable    = false

  validation {
    condition     = contains(["refuse", "warn"], var.wrong_sizing)
    error_message = "wrong_sizing is refuse or warn."
  }
}

# --- What operators see -------------------------------------------------------------------------------

variable "alerts" {
  description = "Whether the alerts are made."
  type        = bool
  default     = true
  nullable    = false
}

variable "notification_channels" {
  description = "Who is told, as projects/PROJECT/notificationChannels/ID. Without one, alerts only open incidents."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "dead_letter_notification_channels" {
  description = "The same for the alert that stands in dead_letter_project: a channel serves one project."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "runbook_url" {
  description = "Where docs/runbook.md is to be read; each alert links its heading there. Put the address of your own copy."
  type        = string
  default     = "docs/runbook.md"
  nullable    = false
}
