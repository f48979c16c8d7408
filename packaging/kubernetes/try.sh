#!/usr/bin/env bash
# Sends the chart's objects to a real API server, which checks and admits them without
# keeping them: try.sh FOLDER (of build.sh). Needs helm, etcd and openssl. The
# ServiceMonitor is left out: its kind is not in Kubernetes.
set -euo pipefail
tools=$(realpath "$1")
chart=$(dirname "$0")/../../charts/tessera
scratch=$(mktemp -d)
started=()
# SIGKILL: after SIGTERM the API server waits for an etcd that has gone.
trap 'kill -KILL "${started[@]}" 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT

client=http://127.0.0.1:12379 peer=http://127.0.0.1:12380
etcd --data-dir "$scratch/etcd" --listen-client-urls $client --advertise-client-urls $client \
  --listen-peer-urls $peer --initial-advertise-peer-urls $peer --initial-cluster default=$peer \
  >"$scratch/etcd.log" 2>&1 &
started+=($!)
openssl genrsa -out "$scratch/key" 2048 2>/dev/null
token=$(openssl rand -hex 16)
echo "$token,admin,admin,system:masters" >"$scratch/tokens"
"$tools/kube-apiserver" --etcd-servers=$client --bind-address=127.0.0.1 --secure-port=16443 \
  --cert-dir="$scratch/certs" --token-auth-file="$scratch/tokens" --authorization-mode=RBAC \
  --service-account-issuer=https://localhost --service-account-key-file="$scratch/key" \
  --service-account-signing-key-file="$scratch/key" --service-cluster-ip-range=10.0.0.0/24 \
  --disable-admission-plugins=ServiceAccount >"$scratch/apiserver.log" 2>&1 &
started+=($!)
kubectl() {
  "$tools/kubectl" --server https://127.0.0.1:16443 --insecure-skip-tls-verify --token "$token" "$@"
}
until kubectl get --raw /readyz >/dev/null 2>&1; do
  for pid in "${started[@]}"; do
    if ! kill -0 "$pid" 2>/dev/null || ((SECONDS > 120)); then
      echo "etcd or the API server is not ready:" >&2
      tail -5 "$scratch/etcd.log" "$scratch/apiserver.log" >&2
      exit 1
    fi
  done
  sleep 0.5
done
for values in existingSecret=tessera database=sqlite,replicas=1; do
  helm template tessera "$chart" --set "$values" |
    kubectl apply --dry-run=server --validate=strict -f -
done
