#!/usr/bin/env bash
# Sends the chart's objects to a real API server, which checks and admits them without
# keeping them: try.sh FOLDER (of build.sh). Needs helm, etcd and openssl. The kind
# ServiceMonitor comes from its operator's definition (third_party/README.md).
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
definition=$(dirname "$0")/../../third_party/prometheus-operator/monitoring.coreos.com_servicemonitors.yaml
kubectl create -f "$definition"
kubectl wait --for=condition=Established --timeout=60s -f "$definition"
# The names of the kinds are asked for once: until the new one is there, none of its objects is known.
until kubectl get servicemonitors >/dev/null 2>&1; do
  ((SECONDS < 180)) || { kubectl get servicemonitors; exit 1; }
  sleep 0.5
done
for values in existingSecret=tessera \
  existingSecret=tessera,serviceMonitor.enabled=true \
  database=sqlite,replicas=1,existingSecret=tessera,serviceMonitor.enabled=true \
  database=sqlite,replicas=1; do
  helm template tessera "$chart" --set "$values" |
    kubectl apply --dry-run=server --validate=strict -f -
done
# A field that the definition does not know is refused: the check above is one.
if helm template tessera "$chart" --set existingSecret=tessera,serviceMonitor.enabled=true |
  sed 's/honorLabels:/honourLabels:/' |
  kubectl apply --dry-run=server --validate=strict -f - >/dev/null 2>"$scratch/refused"; then
  echo "the API server took a ServiceMonitor with a field that there is not" >&2
  exit 1
fi
grep honourLabels "$scratch/refused"
