#!/bin/sh
# The work. It does not use locks itself. A resource that keeps the highest token can refuse a late run.
echo "report made with token $HOLDFAST_TOKEN"
