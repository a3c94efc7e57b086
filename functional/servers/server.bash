# What the scripts of the servers share. Each is the one place that knows its server, and is used as
#
#   functional/servers/NAME variable                  the environment variable that names the server to the tests
#   functional/servers/NAME check                     fails, with the exact line that installs it, where it is missing
#   functional/servers/NAME install                   installs it where that needs nobody's answer; else fails as `check`
#   functional/servers/NAME version
#   functional/servers/NAME url PORT                  what the variable gets
#   functional/servers/NAME run DIRECTORY PORT [OPTION..]
#   functional/servers/NAME ready URL                 whether it answers there
#
# `run` stays in the foreground, on 127.0.0.1 and with all that it keeps in DIRECTORY, whose parents
# everybody must be able to pass. Run again on the same directory and port, it is a restart. The
# pid ends by SIGTERM and by SIGKILL, and with it all that it started; so it does if its parent dies.
#
# A script sets VARIABLE, writes `is_installed`, `hint`, `version`, `url`, `run` and `ready`, where it
# can be installed `set_up`, and ends with `serve "$@"`. `ready` has the connection as descriptor 3.

serve() {
  local command=${1:-}
  shift || true
  case $command in
    variable) printf '%s\n' "$VARIABLE" ;;
    check) is_installed || { hint >&2; return 1; } ;;
    install) is_installed || { may_set_up && set_up >&2 && is_installed; } || { hint >&2; return 1; } ;;
    version | url) "$command" "$@" ;;
    run) run "$(mkdir -p "$1" && cd "$1" && pwd -P)" "${@:2}" ;;
    ready) connect "$1" && ready "$1" ;;
    *)
      sed -n '3,9s/^# *//p' "${BASH_SOURCE[0]}" >&2
      return 2
      ;;
  esac
}

may_set_up() { false; }

# For `hint` and `set_up` of what Debian packages.
hint_debian() { printf 'apt-get update && apt-get install -y --no-install-recommends %s\n' "$*"; }
may_debian() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; }
set_up_debian() {
  apt-get -o DPkg::Lock::Timeout=300 update &&
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
}

# Runs a command as that user. Some servers refuse to be root's; who is not root is himself.
as() {
  local user=$1
  shift
  if [[ $(id -u) == 0 ]]; then set -- setpriv --reuid "$user" --regid "$user" --init-groups "$@"; fi
  "$@"
}

# Turns this script into the server, as that user, bound to the life of whoever started it.
become() {
  local user=$1 bound=()
  shift
  if command -v setpriv >/dev/null; then bound=(setpriv --pdeathsig KILL); fi
  # A change of user would cut the bond, so it is made by the same command, which makes it first.
  if [[ $(id -u) == 0 && $user != root ]]; then bound+=(--reuid "$user" --regid "$user" --init-groups); fi
  exec "${bound[@]}" "$@"
}

# The host and the port of a URL, or of host:port.
place() {
  local rest=${1#*://}
  rest=${rest%%/*}
  rest=${rest##*@}
  [[ $rest == *:* ]] || return 1
  local host=${rest%:*}
  host=${host#[}
  printf '%s %s\n' "${host%]}" "${rest##*:}"
}

# Opens descriptor 3. Bash has it built in: whoever only names a server needs none of its tools.
connect() {
  local host port
  read -r host port < <(place "$1") && { exec 3<>"/dev/tcp/$host/$port"; } 2>/dev/null
}

# Whether a line of the answer to `GET PATH` matches.
get() {
  printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$1" >&3
  grep -q "$2" <&3
}

# Below the range from which the kernel gives out ports, so that it gives ours to nobody meanwhile.
free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  printf '%s\n' "$port"
}
