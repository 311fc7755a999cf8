#!/usr/bin/env bash
# Judges the run: annotations, the job's summary, and the same summary as a file for the comment.
# A run that breaks a rule does not fail this step, nor one that has nothing to be held against; one
# that cannot be read does.
#
# MEMHOUSE: the command; MEMHOUSE_DB: the warehouse; RUN; LIMITS: the file of rules, or empty;
# WAIT: seconds. Outputs verdict (pass, fail or not judged), run, comment (the summary's path).
set -euo pipefail
. "$ACTION/.github/action/say.sh"

folder=$(mktemp -d "$RUNNER_TEMP/memhouse-check.XXXXXX")
summary=$folder/summary.md
said=$folder/said.txt
arguments=(--run "$RUN" --wait "$WAIT" --advise --format github)
if [ -n "$LIMITS" ]; then
    arguments+=(--limits "$LIMITS")
fi

status=0
GITHUB_STEP_SUMMARY=$summary "$MEMHOUSE" check "${arguments[@]}" 2> "$said" || status=$?
show "$said"
# Status 1 is also that of a warehouse that cannot be read; then there is no summary.
if [[ $status != [013] || ! -s $summary ]]; then
    annotate error "memhouse: the run cannot be judged" "$(errors_in "$said")"
    exit "$((status > 0 ? status : 1))"
fi
cat "$summary" >> "$GITHUB_STEP_SUMMARY"
verdicts=([0]=pass [1]=fail [3]="not judged")
output verdict "${verdicts[status]}"
output run "$RUN"
output comment "$summary"
