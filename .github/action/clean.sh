#!/usr/bin/env bash
# Runs a command with the variables of the step, of GitHub, of the cloud and of the proxy alone.
# Earlier steps of the job may have set any other (GITHUB_ENV, GITHUB_PATH), such as PYTHONPATH,
# PIP_INDEX_URL or a PATH of their own.
set -euo pipefail

kept=()
for name in $(compgen -e); do
    case $name in
        ACTION | COMMIT | DUMPS | LABELS | LIMITS | MEMHOUSE | MEMHOUSE_DB | NAME | PACKAGES | \
            PULL_REQUEST | PYTHON | REF | REPORT_URL | RUN | SUMMARY | WAIT | \
            GITHUB_* | RUNNER_TEMP | HOME | LANG | LC_* | \
            AWS_* | AZURE_* | GOOGLE_* | \
            HTTP_PROXY | HTTPS_PROXY | NO_PROXY | http_proxy | https_proxy | no_proxy)
            kept+=("$name=${!name}")
            ;;
    esac
done
exec /usr/bin/env -i "${kept[@]}" PATH=/usr/bin:/bin "$@"
