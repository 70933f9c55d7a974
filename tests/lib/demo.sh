# shellcheck shell=bash
# The story that tests/demo tells, inside of its control plane.
set -euo pipefail

work=$(mktemp -d)
serve=
cleanup() {
  if [ -n "$serve" ]; then kill "$serve" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT

bold=$(tput bold 2>/dev/null || true)
plain=$(tput sgr0 2>/dev/null || true)

# A heading, and what is shown under it.
tell() {
  printf '\n%s%s%s\n' "$bold" "$*" "$plain"
  if [ "$TREAD_DEMO_PAUSE" = yes ]; then read -r -p '[Enter] ' _; fi
}

# A command as it is typed, and what comes of it.
show() {
  printf '$ %s\n' "$*"
  "$@" 2>&1
}

# Waits until something is true of the cluster.
until_true() {
  local what=$1 _
  shift
  for _ in $(seq 1 600); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    if [ -n "$serve" ] && ! kill -0 "$serve" 2>/dev/null; then
      echo "tests/demo: tread serve ended:" >&2
      tail -n 20 "$work/serve.log" >&2
      return 1
    fi
    sleep 0.2
  done
  echo "tests/demo: waited in vain until $what" >&2
  tail -n 20 "$work/serve.log" >&2
  return 1
}

has() {
  local wanted=$1
  shift
  "$@" 2>/dev/null | grep -Eq -- "$wanted"
}

# A MachineConfig that writes /etc/chrony.conf, each argument a line.
chrony() {
  local name=$1 text
  shift
  text=$(printf '%s\n' "$@" | base64 -w0)
  cat <<YAML
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: $name
  labels: {machineconfiguration.openshift.io/role: worker}
spec:
  config:
    ignition: {version: 3.4.0}
    storage:
      files:
      - {path: /etc/chrony.conf, mode: 0644, overwrite: true,
         contents: {source: "data:text/plain;base64,$text"}}
YAML
}

# One that nobody listens on, below those that the system gives away.
free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 10000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
  done
  echo "$port"
}

tell "A cluster with three workers, whose clocks are set by chrony"
port=$(free_port)
tls=$(free_port)
tread manifests --with-inputs --outside "https://127.0.0.1:$tls" >"$work/tread.yaml"
show kubectl apply -f "$work/tread.yaml"
kubectl wait --for=condition=Established --timeout=600s crd --all >/dev/null
kubectl label nodes --all node-role.kubernetes.io/worker= >/dev/null
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec:
  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}
  nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}
YAML
chrony 50-chrony 'server ntp1.example.com iburst' 'driftfile /var/lib/chrony/drift' >"$work/chrony.yaml"
kubectl apply -f "$work/chrony.yaml" >/dev/null
show kubectl get nodes,machineconfigpools,machineconfigs

tell "tread serves, with the rights of its own service account and no others"
token=$(kubectl -n tread-system create token tread)
kubectl config view --raw --minify --flatten >"$work/kubeconfig"
KUBECONFIG="$work/kubeconfig" kubectl config set-credentials tread --token="$token" >/dev/null
KUBECONFIG="$work/kubeconfig" kubectl config set-context --current --user=tread >/dev/null
KUBECONFIG="$work/kubeconfig" TREAD_CACHE_DIR="$work/cache" tread-image serve --namespace tread-system \
  --tls-name 127.0.0.1 --listen "127.0.0.1:$port" --listen-tls "127.0.0.1:$tls" \
  2>"$work/serve.log" &
serve=$!
ready() { exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && head -n 1 <&3 | grep -q ' 200 '; }
until_true "tread is ready" ready
show tread policies --cluster

tell "Who owns the template of chrony.conf knows what a change to it needs, and ships a policy"
tread policy build examples/policies/chrony --output "$work/chrony.wasm" >"$work/build.log" 2>&1 || {
  cat "$work/build.log" >&2
  exit 1
}
kubectl create namespace time >/dev/null
show kubectl label namespace time tread.dev/policies=allowed
tread policy pack "$work/chrony.wasm" -n time --name chrony >"$work/policy.yaml"
show kubectl apply -f "$work/policy.yaml"
until_true "the policy is loaded" has 'time.chrony.*Loaded' kubectl get disruptionpolicies
show kubectl get disruptionpolicies time.chrony -o wide

tell "Another time server: what will that do? Nothing happens yet"
chrony 50-chrony 'server ntp2.example.com iburst' 'driftfile /var/lib/chrony/drift' >"$work/change.yaml"
show kubectl apply --dry-run=server -f "$work/change.yaml"
tell "The same from this machine, in full"
show tread plan -f "$work/change.yaml"

tell "Now for real: the warning again, and a plan that everybody can see"
show kubectl apply -f "$work/change.yaml"
until_true "there is a plan" has 'restart chronyd.service' kubectl get disruptionplans
show kubectl get disruptionplans
show tread plans

tell "The next version of the policy is broken: the last good one goes on deciding"
kubectl -n time patch configmap chrony --type merge \
  -p "{\"binaryData\":{\"policy.wasm\":\"$(head -c 5000 "$work/chrony.wasm" | base64 -w0)\"}}" >/dev/null
until_true "the policy is known to be bad" has 'time.chrony.*LastGood' kubectl get disruptionpolicies
show tread policies --cluster
until_true "it is told" has PolicyLastGood kubectl -n time get events
show kubectl -n time get events
chrony 50-chrony 'server ntp3.example.com iburst' 'driftfile /var/lib/chrony/drift' >"$work/change.yaml"
show kubectl apply --dry-run=server -f "$work/change.yaml"

tell "That was all: everything is stopped and removed"
