#!/bin/sh
# Install the optional tools of the full test suite from Debian's packages:
# PostgreSQL and Redis (servers the system tests start privately) and Chromium with its driver.
# Outside CI a tool that cannot be had is one line; in CI (CI=true) it is a failure.
set -u

have() { command -v "$1" >/dev/null 2>&1; }

wanted=""
[ -n "$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || have initdb || wanted="$wanted postgresql"
have redis-server || wanted="$wanted redis-server"
have chromium || wanted="$wanted chromium"
have chromedriver || wanted="$wanted chromium-driver"
[ -n "$wanted" ] || exit 0

give_up() {
    echo "missing optional tools:$wanted ($1); the tests that need them are skipped" >&2
    [ "${CI:-}" = "true" ] && exit 1
    exit 0
}

have apt-get || give_up "no apt-get here"
if [ "$(id -u)" -eq 0 ]; then as_root=""; elif have sudo && sudo -n true 2>/dev/null; then as_root="sudo"; else
    give_up "run as root: apt-get install$wanted"
fi

# Debian's packages start their services at once; the tests want only the programs.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null && $as_root chmod 755 "$policy"
    trap '$as_root rm -f "$policy"' EXIT
fi
log=$(mktemp)
echo "installing$wanted" >&2
# shellcheck disable=SC2086
if ! { $as_root apt-get update && $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $wanted; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    give_up "apt-get failed"
fi
rm -f "$log"
