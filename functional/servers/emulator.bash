# What the scripts of Google's emulators share: Java programs that keep everything in memory.
#
# A script sets VARIABLE, COMPONENT and JAR, and writes `program JAR`, which prints the arguments of Java.
# shellcheck source-path=SCRIPTDIR source=server.bash
source "${BASH_SOURCE[0]%/*}/server.bash"

# The Cloud SDK is where its program lies; where that is a script of its own, it must be asked, which takes a second.
sdk() {
  local gcloud found
  gcloud=$(command -v gcloud) || return 1
  found=$(readlink -f "$gcloud")
  found=${found%/bin/gcloud}
  if [[ ! -d $found/platform ]]; then found=$(gcloud info --format='value(installation.sdk_root)' 2>/dev/null); fi
  printf '%s\n' "$found"
}

# The newest; some releases put their version into its name.
jar() {
  local sdk
  sdk=$(sdk) || return 1
  # shellcheck disable=SC2086 # the pattern is meant to expand
  printf '%s\n' "$sdk"/platform/$JAR | sort -V | tail -n 1
}

is_installed() { command -v java >/dev/null && [[ -e $(jar) ]]; }

hint() {
  cat <<'TEXT'
As Debian packages (Google's repository: https://cloud.google.com/sdk/docs/install#deb):
  apt-get install -y google-cloud-cli google-cloud-cli-pubsub-emulator google-cloud-cli-datastore-emulator google-cloud-cli-firestore-emulator default-jre-headless
or, in a Cloud SDK that was installed in another way (Java is then yours to install):
  gcloud components install pubsub-emulator cloud-datastore-emulator cloud-firestore-emulator
TEXT
}

# The SDK's own note of what is installed, else the version in the jar's name.
version() {
  local found jar
  jar=$(jar)
  found=$(grep -ho '"version_string": *"[^"]*"' "$(sdk)/.install/$COMPONENT.snapshot.json" 2>/dev/null |
    head -n 1 | cut -d '"' -f 4) || true
  [[ -n $found ]] || found=$(grep -o '[0-9][0-9.]*[0-9]' <<<"${jar##*/}" | head -n 1) || true
  printf '%s\n' "${found:-unknown}"
}

url() { printf '127.0.0.1:%s\n' "$1"; }

run() {
  local directory=$1 port=$2 program
  mapfile -t program < <(program "$(jar)")
  become "$(id -un)" java -Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.language=en \
    "-Djava.io.tmpdir=$directory" "${program[@]}" --host=127.0.0.1 --port="$port" "${@:3}"
}

# Its only health check.
ready() { get / '^Ok'; }
