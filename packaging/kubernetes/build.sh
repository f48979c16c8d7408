#!/usr/bin/env bash
# Builds kube-apiserver and kubectl into a folder, from the Go module proxy: build.sh FOLDER.
# Takes some minutes once; keep the folder.
set -euo pipefail
version=v1.37.2
staging=v0.${version#v1.}
mkdir -p "$1"
cd "$1"
go mod download "k8s.io/kubernetes@$version"
sources=$(go env GOMODCACHE)/k8s.io/kubernetes@$version
{
  echo "module tessera.local/kubernetes"
  grep -E '^go ' "$sources/go.mod"
  echo "require k8s.io/kubernetes $version"
  # Its own go.mod takes these from folders beside it; they are published under this version.
  echo "replace ("
  grep -oE '^\s+k8s.io/[a-z-]+ v0\.0\.0( |$)' "$sources/go.mod" |
    awk -v version="$staging" '{ print "  " $1 " => " $1 " " version }'
  echo ")"
} >go.mod
cat >tools.go <<'GO'
//go:build tools

package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
GO
go mod tidy
go build -o . k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl
