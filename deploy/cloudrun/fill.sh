#!/bin/sh
# Fill in a description of this folder:
#
#   IMAGE=… PROJECT=… ENDPOINT=https://… deploy/cloudrun/fill.sh pipeline-worker-staging.yaml > filled.yaml
#
# ENDPOINT is the address of a service that Pub/Sub pushes to; jobs and worker pools have none.
set -eu
description="$(dirname "$0")/$1"
if grep -q '${ENDPOINT}' "$description"; then
  : "${ENDPOINT:?is the address of the service}"
fi
sed -e "s|\${IMAGE}|${IMAGE:?is the image}|g" \
  -e "s|\${PROJECT}|${PROJECT:?is the project of Google Cloud}|g" \
  -e "s|\${ENDPOINT}|${ENDPOINT:-}|g" "$description"
