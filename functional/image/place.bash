# What the scripts of this folder share: where the images are kept, and the tools that make them.
#
# All of it is under target/image of this tree (or where PUSHONCE_IMAGES points to): the store of images, about
# 3 GB, the crates that a build has fetched, and the logs. `make clean` removes it with the rest.
# shellcheck shell=bash disable=SC2034 # what is not used here is used by those who read it

# In a mount namespace of its own, so that nothing stays mounted, whatever ends it: one could not delete target/.
if [[ -z ${PUSHONCE_MOUNTS:-} && $(id -u) == 0 ]]; then PUSHONCE_MOUNTS=own exec unshare --mount -- "$0" "$@"; fi

ROOT=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
PLACE=${PUSHONCE_IMAGES:-$ROOT/target/image}
TOOLCHAIN=$(rustc --print sysroot)
RUST_IMAGE=localhost/rust:$(rustc --version | grep -o '[0-9]*\.[0-9]*' | head -n 1)-bookworm
RUNTIME_IMAGE=localhost/cc-debian12:nonroot
IMAGE=localhost/orders:latest
readonly ROOT PLACE TOOLCHAIN RUST_IMAGE RUNTIME_IMAGE IMAGE

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

fail() {
  say "$*"
  exit 1
}

# `buildah`, with no daemon, no registry and nothing of this machine's own images.
images() {
  mkdir -p "$PLACE/tmp"
  # The kernel puts no overlay on an overlay.
  local driver=overlay
  if [[ $(stat -f -c %T "$PLACE") == overlayfs ]]; then driver=vfs; fi
  # It keeps the cache mounts of a build where temporary files go.
  TMPDIR=$PLACE/tmp BUILDAH_ISOLATION=chroot \
    buildah --root "$PLACE/storage" --runroot "$PLACE/run" --storage-driver "$driver" "$@"
}

# Installs what is missing where this is root's Debian; elsewhere says how.
tools() {
  local tool missing=()
  for tool in buildah curl debootstrap; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if ((${#missing[@]} > 0)); then
    # shellcheck source-path=SCRIPTDIR source=../servers/server.bash
    source "$ROOT/functional/servers/server.bash"
    may_debian || {
      say "needs root on a Debian machine, and there: $(hint_debian "${missing[@]}")"
      return 1
    }
    set_up_debian "${missing[@]}" >&2
  fi
  [[ $(id -u) == 0 ]] || fail "must be root, which it takes to make a root file system"
}
