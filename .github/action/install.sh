#!/usr/bin/env bash
# Installs the memhouse of this checkout in an environment of its own, so that the packages of the
# programs that are measured stay as they are. Prints nothing if all is well.
#
# ACTION: the checkout; REF: its tag, branch or commit; MEMHOUSE_DB: the warehouse; PACKAGES: more
# packages.
# Output memhouse: the command's path.
set -euo pipefail
. "$ACTION/.github/action/say.sh"

environment=$RUNNER_TEMP/memhouse
said=$RUNNER_TEMP/memhouse-install.txt
extras=report
if [[ $MEMHOUSE_DB == *://* || -d $MEMHOUSE_DB ]]; then
    extras+=,lake
fi
# GitHub unpacks the checkout without its history, which has the version otherwise.
if [[ $REF =~ ^v([0-9]+\.[0-9]+\.[0-9]+)$ ]]; then
    export SETUPTOOLS_SCM_PRETEND_VERSION_FOR_MEMHOUSE=${BASH_REMATCH[1]}
fi
all=("${ACTION}[$extras]")
while read -r -d ' ' package; do
    if [ -n "$package" ]; then
        all+=("$package")
    fi
done <<< "${PACKAGES//$'\n'/ } "

install() {
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        printf 'error: memhouse needs Python 3.11 or newer: add actions/setup-python before\n' >&2
        return 1
    fi
    python3 -m venv "$environment" &&
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
            -- "${all[@]}"
}

# A second use of the action in the same job finds it installed.
if [ "$(cat "$environment/installed.txt" 2> /dev/null)" != "${all[*]}" ]; then
    if ! install > "$said" 2>&1; then
        show "$said"
        annotate error "memhouse: cannot be installed" "$(errors_in "$said")"
        exit 1
    fi
    printf '%s\n' "${all[*]}" > "$environment/installed.txt"
fi
output memhouse "$environment/bin/memhouse"
