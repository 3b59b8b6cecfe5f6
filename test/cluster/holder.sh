# holder.sh STATE CGROUP NODE_IP SERVICE_CIDR MARK SYSCTL=VALUE...
# Pid 1 of the cluster's namespaces (net, mount, pid, ipc): sets them up, then starts what the FIFO names, and reaps.
# Its death ends everything inside: the kernel kills the processes and drops mounts, veths and iptables rules.
set -eu
STATE=$1 CGROUP=$2 NODE_IP=$3 SERVICE_CIDR=$4
shift 5 # MARK only makes this process findable from its arguments
cd "$STATE"

mount --make-rshared /
mount -t tmpfs tmpfs /run
mount --bind "$STATE/log/var" /var/log
mkdir -p "$STATE/overlay"
# In a container the state folder itself may lie on an overlay, which cannot carry another.
if [ "$(stat -f -c %T "$STATE")" = overlayfs ]; then
  for dir in "$STATE/overlay" "$STATE/var/containerd"; do mount -t tmpfs tmpfs "$dir"; done
fi
# kubelet and containerd make folders of their own in these; an overlay keeps them off the host. (To make mount points on the host
# and remove them afterwards would silently unmount them in every other cluster.)
for dir in /var/lib /opt /usr/libexec; do
  layer=$STATE/overlay$dir
  mkdir -p "$layer/upper" "$layer/work"
  mount -t overlay overlay -o "lowerdir=$dir,upperdir=$layer/upper,workdir=$layer/work" "$dir"
done
# containerd's own overlays cannot lie on an overlay.
mkdir -p /var/lib/kubelet /var/lib/containerd /var/lib/cni
for dir in kubelet containerd cni; do mount --bind "$STATE/var/$dir" "/var/lib/$dir"; done

for setting in "$@"; do
  file=$STATE/sysctl/${setting%%=*}
  mkdir -p "$(dirname "$file")"
  echo "${setting#*=}" >"$file"
  mount --bind "$file" "/proc/sys/${setting%%=*}"
done

for hierarchy in /sys/fs/cgroup/*/; do
  [ -e "$hierarchy/cgroup.controllers" ] || mkdir -p "$hierarchy/$CGROUP"
done
for file in cpuset.cpus cpuset.mems; do # an empty cpuset takes no process
  cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/$CGROUP/$file"
done

ip link set lo up
ip addr add "$NODE_IP/32" dev lo
ip route add "$SERVICE_CIDR" dev lo src "$NODE_IP" # without a route the kernel refuses before kube-proxy's rules can translate
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet

# Components must be children of this shell, not of an nsenter outside: nsenter stops when its child is stopped, then never reaps it,
# and the pid namespace cannot end.
set +eu
exec 3<>"$STATE/ctl"
touch "$STATE/holder.ready"
while read -r name <&3; do
  eval "exec $(cat "$STATE/cmd/$name")" </dev/null >>"$STATE/log/$name.log" 2>&1 3<&- &
  echo $! >"$STATE/nspid/$name"
done
