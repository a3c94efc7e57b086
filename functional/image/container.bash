# For `check` and `figures`: a container of the image, services that run in it, and how one looks at them from outside.
# shellcheck shell=bash disable=SC2034 # what is not used here is used by those who read it
# shellcheck source-path=SCRIPTDIR source=place.bash
source "${BASH_SOURCE[0]%/*}/place.bash"
# shellcheck source-path=SCRIPTDIR source=../servers/server.bash
source "$ROOT/functional/servers/server.bash"

# Patience only: a machine may be busy.
readonly SOON=30 LOGS=$PLACE/logs
# The least push, and data for it that says nothing.
readonly PUSH='{"message":{"messageId":"%s","data":"%s"}}' NOTHING=e30=

container=
root=
entrypoint=()
# The engine's process of each service that runs, by the service's port.
declare -A engine=()

# Opens a container, with its file system in sight, until the script ends.
open_container() {
  trap close_container EXIT
  rm -rf "$LOGS"
  mkdir -p "$LOGS"
  container=$(images from --pull-never "$IMAGE")
  root=$(images mount "$container")
  mapfile -t entrypoint < <(images inspect --format '{{range .OCIv1.Config.Entrypoint}}{{println .}}{{end}}' "$container" | grep .)
}

close_container() {
  local port service
  for port in "${!engine[@]}"; do
    service=$(service "$port")
    kill -KILL "$service" 2>/dev/null || true
  done
  wait
  if [[ -n $container ]]; then images rm "$container" >/dev/null; fi
}

# Runs what the image says, with these variables and arguments: an engine does so by itself.
in_image() {
  local options=()
  while [[ ${1:-} == *=* ]]; do
    options+=(--env "$1")
    shift
  done
  images run "${options[@]}" "$container" -- "${entrypoint[@]}" "$@"
}

# Starts the service on that port, with these variables.
begin() {
  local port=$1
  in_image PORT="$port" "${@:2}" >"$LOGS/$port" 2>&1 </dev/null &
  engine[$port]=$!
}

start() {
  begin "$1" PUSHONCE_STORE=memory: "${@:2}"
  await "it listens on $1" answers "$1"
}

answers() { [[ $(status "http://127.0.0.1:$1/healthz") == 200 ]]; }
status() { curl --silent --max-time "$SOON" --output /dev/null --write-out '%{http_code}' "$@" || true; }
# shellcheck disable=SC2059 # a format
push() { status --data "$(printf "$PUSH" "$2" "${3:-$NOTHING}")" "http://127.0.0.1:$1/"; }
logs() { grep -q "$2" "$LOGS/$1"; }

# The service's own process, below the engine's: the last of the line.
service() {
  local pid=${engine[$1]} child
  while :; do
    # It fails wherever a process has ended meanwhile, which has nothing to do with ours.
    child=$(grep -lsE "^PPid:[[:space:]]$pid$" /proc/[0-9]*/status || true)
    [[ -n $child ]] || break
    child=${child%%$'\n'*}
    pid=${child//[!0-9]/}
  done
  printf '%s\n' "$pid"
}

has_ended() { ! kill -0 "${engine[$1]}" 2>/dev/null; }

# The code that a service has ended with.
code_of() {
  local code=0
  wait "${engine[$1]}" || code=$?
  unset "engine[$1]"
  return "$code"
}

await() {
  local what=$1 deadline=$((SECONDS + SOON))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || {
      tail -n 5 "$LOGS"/* >&2
      fail "not so within $SOON s: $what"
    }
    sleep 0.05
  done
}
