# Sourced by up: containerd, kubelet, DNS and kube-proxy of the one node.

cat >"$STATE/conf/containerd.toml" <<END
version = 2
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.local/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$STATE/conf/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
END

# ptp, not bridge: each pod has a routed veth, so that Services work between pods of the node without bridge netfilter.
cat >"$STATE/conf/cni/10-pods.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END

# Eviction is off: a full disk of the machine must not evict tests. CrashLoopBackOff is short: restarts come within seconds.
cat >"$STATE/conf/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
failSwapOn: false
oomScoreAdj: 0
maxOpenFiles: 20000
maxPods: 250
evictionHard: {memory.available: 0%, nodefs.available: 0%, imagefs.available: 0%, nodefs.inodesFree: 0%}
imageGCHighThresholdPercent: 100
resolvConf: $STATE/conf/resolv.conf
clusterDNS: [$NODE_IP]
clusterDomain: cluster.local
serializeImagePulls: false
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 10
crashLoopBackOff: {maxContainerRestartPeriod: 2s}
kubeAPIQPS: 500
kubeAPIBurst: 1000
eventRecordQPS: 0
shutdownGracePeriod: 0s
END
echo "nameserver $NODE_IP" >"$STATE/conf/resolv.conf"

# The conntrack sysctls are read-only in a network namespace: zero leaves them alone.
cat >"$STATE/conf/proxy.yaml" <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $STATE/conf/proxy.kubeconfig}
hostnameOverride: node1
mode: iptables
clusterCIDR: 10.244.0.0/24
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
oomScoreAdj: 0
iptables: {minSyncPeriod: 0s, syncPeriod: 30s}
END

launch containerd containerd --config "$STATE/conf/containerd.toml"
"$HERE/image/make.sh" registry.local/pause:1 "$STATE/images/pause.tar" '["/bin/sleep","2147483647"]'
"$HERE/image/make.sh" registry.local/busybox:1 "$STATE/images/busybox.tar"
wait_for 30 containerd 'answer of containerd' "$HERE/exec" ctr version
for image in pause busybox; do "$HERE/exec" ctr -n k8s.io images import "$STATE/images/$image.tar" >/dev/null; done
say 'containerd answers, registry.local/pause:1 and registry.local/busybox:1 are there'

launch kubelet "$BIN/kubelet" --config="$STATE/conf/kubelet.yaml" --kubeconfig="$STATE/conf/kubelet.kubeconfig" \
  --hostname-override=node1 --node-ip=$NODE_IP --cert-dir="$STATE/pki/kubelet"
# kube-proxy's user may list Services and EndpointSlices, which is all that DNS needs.
launch dns "$BIN/dns" --kubeconfig="$STATE/conf/proxy.kubeconfig" --listen=$NODE_IP:53
launch proxy "$BIN/kube-proxy" --config="$STATE/conf/proxy.yaml"

node_ready() {
  kubectl get node node1 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' | grep -q True
}
wait_for 90 kubelet 'Ready node' node_ready
say 'node1 is Ready'
