#!/bin/sh
# The work, which knows nothing of locks. A resource that keeps the highest token it has seen can refuse a late run.
echo "report made with token $HOLDFAST_TOKEN"
