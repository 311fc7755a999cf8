# shellcheck shell=bash
# What the steps of action.yml say to GitHub. The steps source this file.

# In a job, messages of wrong usage are coloured otherwise.
export TERM=dumb

# Prints a file in the log. None of its lines is taken for a workflow command, whatever it has.
show() {
    local token
    token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    printf '::stop-commands::%s\n' "$token"
    cat -- "$1"
    printf '\n::%s::\n' "$token"
}

# The errors in what memhouse printed, a line each; else the lines of the frame that wrong usage
# is told in, as one line; else the last line.
errors_in() {
    local found
    found=$(sed -n -e 's/^error: //p' "$1")
    if [ -z "$found" ]; then
        found=$(sed -n -e 's/^│ *\(.*[^ ]\) *│$/\1/p' "$1" | tr '\n' ' ')
    fi
    if [ -z "$found" ]; then
        found=$(tail -n 1 "$1")
    fi
    printf '%s' "$found"
}

# annotate KIND TITLE TEXT: one annotation of the job. KIND is error, warning or notice.
annotate() {
    local text=$3
    text=${text//'%'/%25}
    text=${text//$'\r'/%0D}
    text=${text//$'\n'/%0A}
    printf '::%s title=%s::%s\n' "$1" "${2//:/%3A}" "$text"
}

# output NAME VALUE: an output of the step.
output() {
    printf '%s=%s\n' "$1" "$2" >> "$GITHUB_OUTPUT"
}
