#!/bin/sh
# A job that cron starts on every host. One of them makes the report, once a day, and the others end quietly.
#
#     REDIS_URL=redis://127.0.0.1:6379 npm start     in this folder, after `npm run build` in the checkout
#
# HOLDFAST names the program, if it is not installed as `holdfast`.
exec ${HOLDFAST:-holdfast} run nightly-report -n --skip-ok --once-per 1d --max-hold 1h -- sh report.sh
