# Shared by the scripts of this folder: where a cluster keeps its state, and how its processes are found.
#
#   RUNTIMED_CLUSTER_DIR   state folder of one cluster; by default one per checkout, under $TMPDIR or /tmp. Two folders, two clusters.
#   RUNTIMED_CLUSTER_CACHE where `build` keeps the binary; by default ${XDG_CACHE_HOME:-$HOME/.cache}/runtimed-cluster

LC_ALL=C # numbers with a point
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash8() { sha256sum | cut -c1-8; }
STATE=$(realpath -m "${RUNTIMED_CLUSTER_DIR:-${TMPDIR:-/tmp}/runtimed-cluster-$(printf %s "$HERE" | hash8)}")
CGROUP=runtimed-cluster-$(printf %s "$STATE" | hash8)
CACHE=${RUNTIMED_CLUSTER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/runtimed-cluster}/$(cat "$HERE"/kube/go.mod "$HERE"/kube/go.sum "$HERE"/kube/*.go | sha256sum | cut -c1-16)
BIN=$CACHE/bin
NODE_IP=10.20.0.1
SERVICE_CIDR=10.96.0.0/16
API=https://127.0.0.1:6443

# The kubelet insists on these host-wide values. The holder shows them to it; `down` checks that the host's own are unchanged.
SYSCTLS=(vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000)

T0=${EPOCHREALTIME/./}
say() { printf '%6.2f s  %s\n' "$(((${EPOCHREALTIME/./} - T0) / 10000))e-2" "$*"; }
die() { printf 'cluster: %s\n' "$*" >&2; exit 1; }

# Prints the host pids of the processes that hold the cluster of $STATE up (unshare and its child, the holder); none: it is dead.
# An argument of theirs names the folder, so that a recycled pid is never taken for one. Zombies have no arguments.
holder_pids() {
  grep -lzxF -f - /proc/[0-9]*/cmdline 2>/dev/null <<<"holder-of:$STATE" | sed 's#/proc/##;s#/cmdline##'
}

# gone PID: true when the process has ended. (kill -0 lies: a killed daemon can stay a zombie for a while.)
gone() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  stat=${stat##*) }
  [ "${stat%% *}" = Z ]
}

# holder: prints the host pid of pid 1 of the cluster, or dies with what to do.
holder() {
  local pid
  pid=$(cat "$STATE/holder.pid" 2>/dev/null) || die "cannot find a cluster at $STATE: bring one up with $HERE/up"
  gone "$pid" && die "cannot use the cluster at $STATE: it has died; bring another up with $HERE/up"
  echo "$pid"
}

# launch NAME CMD...: starts a component as a child of the holder; its host pid goes to pid/NAME, its command to cmd/NAME.
launch() {
  local name=$1 holder pid deadline=$((SECONDS + 10))
  shift
  printf '%q ' "$@" >"$STATE/cmd/$name"
  rm -f "$STATE/pid/$name" "$STATE/nspid/$name"
  holder=$(holder)
  echo "$name" >"$STATE/ctl"
  while [ $SECONDS -lt $deadline ]; do
    if [ -s "$STATE/nspid/$name" ]; then
      for pid in $(cat "/proc/$holder/task/$holder/children"); do
        [ "$(awk '/^NSpid:/ { print $NF }' "/proc/$pid/status" 2>/dev/null)" = "$(cat "$STATE/nspid/$name")" ] || continue
        echo "$pid" >"$STATE/pid/$name"
        return 0
      done
      # Not a child any more: it has ended already. Whoever waits for its effect reports that.
      grep -q . "$STATE/log/$name.log" 2>/dev/null && return 0
    fi
    sleep 0.02
  done
  die "cannot start $name: the holder did not within 10 s ($STATE/log/holder.log)"
}

# wait_for SECONDS COMPONENT WHAT CMD...: until CMD succeeds; at the deadline, or when the component has ended, shows its last words.
wait_for() {
  local deadline=$((SECONDS + $1)) component=$2 what=$3 reason="within $1 s"
  shift 3
  until "$@" >/dev/null 2>&1; do
    if [ -s "$STATE/pid/$component" ] && gone "$(cat "$STATE/pid/$component")"; then reason="because $component has ended" deadline=0; fi
    if [ $SECONDS -ge $deadline ]; then
      printf -- '--- last lines of %s ---\n' "$STATE/log/$component.log" >&2
      tail -n 15 "$STATE/log/$component.log" >&2
      die "cannot bring the cluster up: no $what $reason"
    fi
    sleep 0.05
  done
}
