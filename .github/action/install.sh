#!/usr/bin/env bash
# Installs the memhouse of this checkout in a new folder that only this user can read, so that the
# packages of the programs that are measured stay as they are. Nothing that earlier steps may have
# left is used: no folder, no setting or cache of pip. Prints nothing if all is well.
#
# ACTION: the checkout; REF: its tag, branch or commit; PYTHON: the interpreter's path; MEMHOUSE_DB:
# the warehouse; PACKAGES: more packages.
# Output memhouse: the command's path.
set -euo pipefail
. "$ACTION/.github/action/say.sh"

folder=$(mktemp -d "$RUNNER_TEMP/memhouse.XXXXXX")
environment=$folder/environment
said=$folder/said.txt
# GitHub unpacks the checkout without its history, which has the version otherwise.
if [[ $REF =~ ^v([0-9]+\.[0-9]+\.[0-9]+)$ ]]; then
    export SETUPTOOLS_SCM_PRETEND_VERSION_FOR_MEMHOUSE=${BASH_REMATCH[1]}
fi
all=("$ACTION")
while read -r -d ' ' package; do
    if [ -n "$package" ]; then
        all+=("$package")
    fi
done <<< "${PACKAGES//$'\n'/ } "

install() {
    "$PYTHON" -I -m venv "$environment" &&
        "$environment/bin/python" -I -m pip --isolated install --quiet --no-cache-dir \
            --disable-pip-version-check -- "${all[@]}"
}

if ! install > "$said" 2>&1; then
    show "$said"
    annotate error "memhouse: cannot be installed" "$(errors_in "$said")"
    exit 1
fi
output memhouse "$environment/bin/memhouse"
