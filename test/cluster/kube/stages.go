package main

import (
	"fmt"
	"strings"

	nodeinit "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// stages prints the life of simulated nodes and pods for kwok: pods become ready, complete and go at once.
// kwok needs the separators: without them it finds no pod stages, and pods stay Pending.
func stages() {
	fmt.Println(strings.Join([]string{
		nodeinit.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease,
		pod.DefaultPodReady, pod.DefaultPodComplete, pod.DefaultPodDelete,
	}, "\n---\n"))
}
