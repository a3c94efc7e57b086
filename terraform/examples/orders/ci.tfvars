# Values with which the example is planned where nothing is deployed.
project = "offline-project"
region  = "europe-west1"
image   = "europe-west1-docker.pkg.dev/offline-project/images/orders@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
email   = "operators@example.com"
