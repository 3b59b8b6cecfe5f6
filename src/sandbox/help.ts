/** What `npm run sandbox -- --help` says: usage, and the rules by which the sandbox plays failures. */
export const HELP = `A Kubernetes API in one process, for people without a cluster and for tests. Loopback only, nothing is kept.

usage: npm run sandbox -- [--port 6443] [--kubeconfig FILE] [--namespace NAME …] [--token TOKEN …]

  --port N           port on 127.0.0.1, 0 = any free one (default 6443)
  --kubeconfig FILE  writes a kubeconfig for it; the file is removed at the end
  --namespace NAME   makes this namespace too, may be repeated; default and kube-system are there
  --token TOKEN      only requests with this bearer token are answered, may be repeated
  --help             this text

It serves until SIGTERM or SIGINT, then stops every process it started.

What it serves: Deployments, ReplicaSets (with status and scale), Jobs, Pods (with log and eviction), Services, Events,
Namespaces, ResourceQuotas (pods, count/…), PodDisruptionBudgets, one Node. List with limit and continue, watch with
bookmarks, JSON, merge and strategic patches, label and field selectors, finalizers, owner references, foreground,
background and orphan deletion. Not there: server-side apply, exec, attach, port-forward, volumes, probes other than
readiness, init containers.

How pods run: the image is only a name. The process is command + args of each container, run as you, in a temporary
folder, with the container's env plus PATH and HOSTNAME. args alone are run if there is no command. With neither,
a built-in prints one line and waits until it is stopped. workingDir is used if this machine has it. A stop is SIGTERM to
the process, after the grace SIGKILL to its process group; unlike in a container, a process without a handler ends at
SIGTERM. Output of both streams is the log: 16 MiB per container, of the running and the previous instance.
podIP is 127.0.0.1, Service names do not resolve, ports are those of this machine.

How failures are played:
  image from a registry host ending in .invalid   ErrImagePull, then ImagePullBackOff; with pull policy Never ErrImageNeverPull
  image sandbox/oom                               OOMKilled, exit code 137, after a moment
  a command that does not exist                   StartError, exit code 128 (restartPolicy Never); RunContainerError, then
                                                  CrashLoopBackOff (Always)
  a pod that asks for more than 64 cores, 256Gi,  stays Pending, PodScheduled=False, reason Unschedulable
  or for a node other than "sandbox"              (pods do not add up)
  a process that ends, restartPolicy Always       restarted at once, then after 2 s, 4 s … 30 s: CrashLoopBackOff
  a ResourceQuota                                 403 "exceeded quota", ReplicaFailure on the ReplicaSet and Deployment
  a failed Job pod                                the next one after 2 s, 4 s …, until backoffLimit
`
