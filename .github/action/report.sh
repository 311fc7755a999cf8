#!/usr/bin/env bash
# Writes a page of charts: the run beside the one that it is held against, or all runs if it is the
# first. The verdict stands without the page, so a page that cannot be written is a warning.
#
# MEMHOUSE: the command; MEMHOUSE_DB: the warehouse; RUN; LIMITS: the file of rules, or empty;
# NAME: of the page's file; WAIT: seconds.
# Output report: the page's path.
set -euo pipefail
. "$ACTION/.github/action/say.sh"

folder=$(mktemp -d "$RUNNER_TEMP/memhouse-report.XXXXXX")
page=$folder/$NAME.html
said=$folder/said.txt

report() {
    local base judge=("$MEMHOUSE" check --run "$RUN" --wait "$WAIT" --format json)
    if [ -n "$LIMITS" ]; then
        judge+=(--limits "$LIMITS")
    fi
    # Whether the run passes does not matter here.
    "${judge[@]}" > "$folder/check.json" || true
    base=$("${MEMHOUSE%/*}/python" -I "$ACTION/.github/action/base_run.py" < "$folder/check.json") ||
        return
    if [ -n "$base" ]; then
        "$MEMHOUSE" report --wait "$WAIT" --output "$page" -- "$base" "$RUN"
    else
        "$MEMHOUSE" report --wait "$WAIT" --output "$page" --history
    fi
}

if (report) > "$said" 2>&1; then
    output report "$page"
else
    annotate warning "memhouse: no report" "$(errors_in "$said")"
fi
show "$said"
