#!/bin/sh
# A job that cron starts on every host. One host makes the report, once a day, and the others print why they skip it.
#
#     REDIS_URL=redis://127.0.0.1:6379 npm start     in this folder, after `npm run build` in the checkout
#
# HOLDFAST names the program, if it is not installed as `holdfast`.
# With --skip-ok in place of -E 0, the others print nothing.
exec ${HOLDFAST:-holdfast} run daily-report -n -E 0 --once-per 1d --max-hold 1h -- sh report.sh
