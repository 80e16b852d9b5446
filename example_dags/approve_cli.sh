#!/bin/sh
# Run the example Dag expense_approval from start to end with curl alone.
#
#   AIRFLOW_URL=https://airflow.example.org TOKEN=... ./approve_cli.sh yes|no ["comment"]
#
# Exit status: 0 the run completed, 1 it failed, 2 something else went wrong.
set -eu

: "${AIRFLOW_URL:?the address of Airflow, for example https://airflow.example.org}"
: "${TOKEN:?a token, for example from POST /auth/token}"
case "${1:-}" in
  yes) approved=true ;;
  no) approved=false ;;
  *) echo "usage: $0 yes|no [comment]" >&2; exit 2 ;;
esac
comment=$(printf '%s' "${2:-}" | tr '\n\t' '  ' | sed 's/\\/\\\\/g; s/"/\\"/g')
run="claim-$(date +%s)-$$"

call() {
  path=$1
  shift
  curl -sS --fail-with-body "$AIRFLOW_URL$path" -H "Authorization: Bearer $TOKEN" \
    -H "Content-Type: application/json" "$@" || exit 2
}

# Prints the status once the run is in one of the given ones.
wait_for() {
  while :; do
    answer=$(call "/handoff/v1/runs/$run")
    # The first one: the result of the run may have a status of its own.
    status=$(printf '%s' "$answer" | sed -n 's/"status":"\([A-Za-z]*\)".*/\1/; s/.*[^A-Za-z]//p')
    case " $* " in *" $status "*) printf '%s\n' "$answer"; return ;; esac
    sleep 1
  done
}

call /api/v2/dags/expense_approval/dagRuns -d "{\"dag_run_id\": \"$run\", \"logical_date\": null}" >/dev/null
echo "started $run" >&2
wait_for Interrupted Failed Completed
call "/handoff/v1/runs/$run/approve/manager_approval" \
  -d "{\"approved\": $approved, \"data\": {\"cost_center\": \"4712\"}, \"comment\": \"$comment\"}"
echo
last=$(wait_for Completed Failed)
printf '%s\n' "$last"
case $last in *'"status":"Completed"'*) exit 0 ;; *) exit 1 ;; esac
