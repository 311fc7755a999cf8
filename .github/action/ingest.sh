#!/usr/bin/env bash
# Ingests the dumps as one run. What cannot be read is one annotation, and fails the step.
#
# MEMHOUSE: the command; MEMHOUSE_DB: the warehouse; DUMPS: paths, and LABELS: KEY=VALUE, one a line;
# RUN: the run's name; WAIT: seconds; PULL_REQUEST: its number, or empty; COMMIT.
set -euo pipefail
. "$ACTION/.github/action/say.sh"

said=$(mktemp "$RUNNER_TEMP/memhouse-ingest.XXXXXX")
# Not the name of a pull request's branch: a fork's branch may be called main.
branch=${PULL_REQUEST:+pr-$PULL_REQUEST}
arguments=(--run "$RUN" --wait "$WAIT")
arguments+=(--label "branch=${branch:-$GITHUB_REF_NAME}" --label "commit=$COMMIT")
while IFS= read -r label; do
    if [ -n "$label" ]; then
        arguments+=(--label "$label")
    fi
done <<< "$LABELS"
arguments+=(--)
while IFS= read -r path; do
    if [ -n "$path" ]; then
        arguments+=("$path")
    fi
done <<< "$DUMPS"

status=0
"$MEMHOUSE" ingest "${arguments[@]}" > "$said" 2>&1 || status=$?
show "$said"
if [ "$status" -ne 0 ]; then
    annotate error "memhouse: the dumps cannot be ingested" "$(errors_in "$said")"
    exit "$status"
fi
